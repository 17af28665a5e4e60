"""The XLA backend in processes of its own: many devices, settings; with jax, without jax, without jaxlib."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

ROOT = Path(__file__).parent.parent

CHOLESKY = """func.func public @main(%x: tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%x) {
    api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
  } : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<2x2xf64>, tensor<i32>
}"""


def run_python(code: str, **environment: str) -> str:
    """Standard output of a program in a process of its own."""
    env = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"} | environment
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ------------------------------------------------------------------------------------------- many devices

REPLICAS = """
    import threading
    import numpy as np
    from xform.backends import xla
    devices = xla.devices("cpu")
    assert len(devices) == 8
    ids = list(range(8))
    text = f'''func.func public @main(%x: tensor<2xf64>)
        -> (tensor<2xf64>, tensor<2xf64>, tensor<8x2xf64>, tensor<ui32>, tensor<2xbf16>) {{
      %sum = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<{[ids]}> : tensor<1x8xi64>}}> ({{
        ^bb0(%a: tensor<f64>, %b: tensor<f64>):
          %s = stablehlo.add %a, %b : tensor<f64>
          stablehlo.return %s : tensor<f64>
      }}) : (tensor<2xf64>) -> tensor<2xf64>
      %next = "stablehlo.collective_permute"(%x) <{{
        source_target_pairs = dense<{[[i, (i + 1) % 8] for i in ids]}> : tensor<8x2xi64>
      }}> : (tensor<2xf64>) -> tensor<2xf64>
      %row = stablehlo.reshape %x : (tensor<2xf64>) -> tensor<1x2xf64>
      %all = "stablehlo.all_gather"(%row) <{{
        all_gather_dim = 0 : i64, replica_groups = dense<{[ids]}> : tensor<1x8xi64>
      }}> : (tensor<1x2xf64>) -> tensor<8x2xf64>
      %id = stablehlo.replica_id : tensor<ui32>
      %small = stablehlo.convert %x : (tensor<2xf64>) -> tensor<2xbf16>
      return %sum, %next, %all, %id, %small
        : tensor<2xf64>, tensor<2xf64>, tensor<8x2xf64>, tensor<ui32>, tensor<2xbf16>
    }}'''
    import ml_dtypes
    f8 = np.dtype("f8")
    types = [((2,), f8), ((2,), f8), ((8, 2), f8), ((), np.dtype("u4")), ((2,), np.dtype(ml_dtypes.bfloat16))]
    x = np.arange(16.0).reshape(8, 2) ** 2
    for order in (devices, devices[::-1]):
        executable = xla.compile(text, types, order, num_replicas=8)
        buffer = xla.put_shards(list(x), order)
        assert xla.devices_of(buffer) == tuple(order)
        np.testing.assert_array_equal(xla.get_shards(buffer), x)
        results = executable.execute([buffer])
        assert all(xla.devices_of(r) == tuple(order) for r in results)
        total, shifted, gathered, ids, small = map(xla.get_shards, results)
        np.testing.assert_array_equal(total, np.broadcast_to(x.sum(0), (8, 2)))
        np.testing.assert_array_equal(shifted, np.roll(x, 1, axis=0))
        np.testing.assert_array_equal(gathered, np.broadcast_to(x, (8, 8, 2)))
        np.testing.assert_array_equal(ids, np.arange(8))
        np.testing.assert_array_equal(small, x.astype(ml_dtypes.bfloat16))
        assert not any(shard.flags.writeable for shard in total)
        np.testing.assert_array_equal(xla.get(results[1]), np.roll(x, 1, axis=0)[0])
        moved = xla.copy_to_device(results[1], devices[3])
        assert xla.device_of(moved) is devices[3]
        again = executable.execute([results[1]])  # results are arguments like others
        np.testing.assert_array_equal(xla.get_shards(again[1]), np.roll(x, 2, axis=0))
    xla.delete(buffer)
    assert xla.is_deleted(buffer)
    try:
        xla.get_shards(buffer)
    except xla.XlaError as error:
        assert "deleted" in str(error)

    def work():  # collectives of several runs must not get in each other's way
        buffer = xla.put_shards(list(x), devices)
        executable = xla.compile(text, types, devices, num_replicas=8)
        for _ in range(300):
            buffer = executable.execute([buffer])[1]
        finished.append(np.roll(x, 300, axis=0) - np.array(xla.get_shards(buffer)))

    finished = []
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(finished) == 3 and not np.any(finished)
    print("done")
"""


@pytest.mark.parametrize("first", ["", "import jax"], ids=["alone", "with jax"])
def test_replicas(first):
    if first:
        pytest.importorskip("jax")
    code = textwrap.dedent(first) + textwrap.dedent(REPLICAS)
    assert run_python(code, XLA_FLAGS="--xla_force_host_platform_device_count=8") == "done"


def test_partitions():
    output = run_python("""
        import numpy as np
        from xform.backends import xla
        xla.configure(num_cpu_devices=4)
        devices = xla.devices("cpu")
        text = '''module {
          sdy.mesh @mesh = <["x"=4]>
          func.func public @main(%x: tensor<8xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
              -> (tensor<8xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                  tensor<f64> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
            %zero = stablehlo.constant dense<0.0> : tensor<f64>
            %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf64>
            %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
                : (tensor<8xf64>, tensor<f64>) -> tensor<f64>
            return %0, %1 : tensor<8xf64>, tensor<f64>
          }
        }'''
        types = [((2,), np.dtype("f8")), ((), np.dtype("f8"))]
        executable = xla.compile(text, types, devices, num_partitions=4)
        x = np.arange(8.0) ** 2
        reversed_, total = executable.execute([xla.put_shards(list(x.reshape(4, 2)), devices)])
        np.testing.assert_array_equal(np.concatenate(xla.get_shards(reversed_)), x[::-1])
        assert xla.get_shards(total) == [x.sum()] * 4
        print("done")
    """)
    assert output == "done"


def test_single_device_programs_on_other_devices():
    output = run_python("""
        import numpy as np
        from xform.backends import xla
        xla.configure(num_cpu_devices=3)
        devices = xla.devices("cpu")
        text = '''func.func public @main(%x: tensor<3xf64>) -> tensor<3xf64> {
          %0 = stablehlo.add %x, %x : tensor<3xf64>
          return %0 : tensor<3xf64>
        }'''
        types = [((3,), np.dtype("f8"))]
        x = xla.put(np.arange(3.0), devices[0])
        data = xla.compile(text, types, devices[:1]).serialize()
        for device in devices:
            there = xla.copy_to_device(x, device)
            assert xla.device_of(there) is device
            for executable in (xla.compile(text, types, [device]), xla.deserialize(data, types, [device])):
                [y] = executable.execute([there])
                assert xla.device_of(y) is device
                np.testing.assert_array_equal(xla.get(y), [0.0, 2.0, 4.0])
        try:
            xla.compile(text, types, devices[:1]).execute([xla.copy_to_device(x, devices[1])])
        except xla.XlaError as error:
            assert "cpu:1" in str(error) and "cpu:0" in str(error)
        for bad in ([np.zeros(3)], [np.zeros(3), np.zeros(4)], [np.zeros(3), np.zeros(3, "f4")]):
            try:
                xla.put_shards(bad, devices[:2])
            except ValueError as error:
                print(error)
    """)
    assert len(output.splitlines()) == 3


# ------------------------------------------------------------------------------- jaxlib, jax and settings

USE = """
    import numpy as np
    cpu = xla.devices("cpu")[0]
    text = '''func.func public @main(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
      %0 = stablehlo.add %x, %x : tensor<2x2xf64>
      return %0 : tensor<2x2xf64>
    }'''
    executable = xla.compile(text, [((2, 2), np.dtype("f8"))], [cpu])
    [y] = executable.execute([xla.put(np.eye(2), cpu)])
    xla.block_until_ready([y])
    assert xla.is_ready(y)
    np.testing.assert_array_equal(xla.get(y), 2 * np.eye(2))
    np.testing.assert_array_equal(xla.get_shards(y), [2 * np.eye(2)])
    executable.hlo_text(), executable.memory_analysis(), executable.cost_analysis(), executable.serialize()
    xla.delete(xla.copy_to_device(y, cpu))
    assert xla.is_deleted(y)
"""


def test_jaxlib_is_imported_at_first_use_and_jax_never():
    code = """
        import sys
        from xform.backends import xla
        assert xla.available()
        print(any(name.split(".")[0] in ("jaxlib", "jax", "scipy") for name in sys.modules))
    """
    check = '\nprint(any(name.split(".")[0] in ("jax", "scipy") for name in sys.modules))'
    code = textwrap.dedent(code) + textwrap.dedent(USE) + check
    assert run_python(code, XFORM_PLATFORMS="").split() == ["False", "False"]


@pytest.mark.parametrize("order", ["jax first", "jax last", "jax between"])
def test_lives_with_jax(order):
    pytest.importorskip("jax")
    jax = textwrap.dedent("""
        import jax, jax.numpy as jnp
        assert jnp.allclose(jnp.linalg.cholesky(4 * jnp.eye(3)), 2 * jnp.eye(3))
        assert jax.jit(jnp.sin)(0.0) == 0 and jax.device_put(1.0) + 1 == 2
    """)
    lapack = textwrap.dedent(f"""
        lapack = xla.compile({CHOLESKY!r}, [((2, 2), np.dtype("f8")), ((), np.dtype("i4"))], [cpu])
        factor, info = lapack.execute([xla.put(4 * np.eye(2), cpu)])
        np.testing.assert_array_equal(np.tril(xla.get(factor)), 2 * np.eye(2))
        import ml_dtypes
        small = np.arange(3).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(xla.get(xla.put(small, cpu)), small)
    """)
    use = "from xform.backends import xla\n" + textwrap.dedent(USE) + lapack
    parts = {
        "jax first": [jax, use],
        "jax last": [use, jax],
        "jax between": [use, jax, "xla.clear_cache()\n", use],
    }
    assert run_python("".join(parts[order]) + 'print("done")') == "done"


def test_without_jaxlib_one_line_says_what_to_install():
    output = run_python("""
        import sys
        sys.modules["jaxlib"] = None
        from xform.backends import xla
        assert not xla.available()
        for platform in (None, "cpu", "gpu"):
            try:
                xla.devices(platform)
            except ImportError as error:
                print(error)
    """)
    message, *others = output.splitlines()
    assert others == [message, message]
    assert "`pip install jax`" in message
    assert '`pip install "xform[cuda]"`' in message


def test_configure_before_first_use_only():
    output = run_python("""
        from xform.backends import xla
        try:
            xla.configure(num_cpu_devices=0)
        except ValueError as error:
            print(error)
        xla.configure(num_cpu_devices=3)
        xla.configure(platforms="cpu")
        print(len(xla.devices()))
        for change in ({"num_cpu_devices": 2}, {"platforms": "cpu"}):
            try:
                xla.configure(**change)
            except RuntimeError as error:
                print(error)
        xla.configure(cache_dir="anywhere")
    """).splitlines()
    assert output[:2] == ["configure: num_cpu_devices must be at least 1, got 0", "3"]
    assert len(output) == 4
    assert all("before devices are used" in line for line in output[2:])


def test_the_number_of_devices_from_xla_flags():
    code = "from xform.backends import xla; print(len(xla.devices('cpu')))"
    assert run_python(code) == "1"
    assert run_python(code, XLA_FLAGS="--xla_force_host_platform_device_count=5") == "5"


MISSING = """
    import sys
    from xform.backends import xla
    for platform in ("gpu", "tpu", "abacus"):
        try:
            xla.devices(platform)
        except RuntimeError as error:
            print(error)
    print("jax" in sys.modules, xla.devices()[0].platform, xla.devices() == xla.devices("cpu"))
"""


def test_a_platform_that_is_not_there(tmp_path):
    lines = run_python(MISSING, XFORM_PLATFORMS="").splitlines()
    for platform, line in zip(("gpu", "tpu", "abacus"), lines, strict=False):
        assert f"platform '{platform}' is not available" in line
        assert "cpu" in line
    assert lines[3:] == ["False cpu True"]
    lines = run_python(MISSING, XFORM_PLATFORMS="cpu").splitlines()
    assert lines[0] == "platform 'gpu' is not among those allowed: cpu"


def test_a_plugin_without_its_device(tmp_path):
    """With a plugin installed jax is asked, unless only the CPU is wanted."""
    pytest.importorskip("jax")
    plugin = tmp_path / "jax_plugins" / "useless"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("def initialize():\n    print('started')\n")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    code = """
        import sys
        from xform.backends import xla
        xla.devices("cpu")
        print("jax" in sys.modules)
    """
    assert run_python(code, PYTHONPATH=path) == "False"
    assert run_python(code.replace('devices("cpu")', "devices()"), PYTHONPATH=path, XFORM_PLATFORMS="cpu") == "False"
    lines = run_python(MISSING, PYTHONPATH=path).splitlines()
    assert lines[0] == "started"
    assert lines[1].startswith("platform 'gpu' is not available: ")
    assert lines[4:] == ["True cpu True"]


def test_disk_cache_serves_other_processes_and_lapack(tmp_path):
    code = f"""
        import sys, numpy as np
        from xform.backends import xla
        cpu = xla.devices("cpu")[0]
        types = [((2, 2), np.dtype("f8")), ((), np.dtype("i4"))]
        x = np.array([[4.0, 1.0], [1.0, 5.0]])
        factor, _ = xla.compile({CHOLESKY!r}, types, [cpu]).execute([xla.put(x, cpu)])
        np.testing.assert_allclose(np.tril(xla.get(factor)), np.linalg.cholesky(x), rtol=1e-14)
        print(xla.compile_count, xla.disk_cache_hits, "jax" in sys.modules)
    """
    assert run_python(code, XFORM_CACHE_DIR=str(tmp_path)) == "1 0 False"
    assert run_python(code, XFORM_CACHE_DIR=str(tmp_path)) == "0 1 False"
