"""The XLA backend against NumPy: buffers, executables, caches. Its dealings with devices, jaxlib and jax are
in test_backend_xla_processes.py.
"""

import threading

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("jaxlib")

from xform.backends import disk_cache, xla

F64 = np.dtype("float64")
I32 = np.dtype("int32")

SINE = """func.func public @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  %0 = stablehlo.sine %x : tensor<3xf64>
  return %0 : tensor<3xf64>
}"""

NUMPY_DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64
    float16 float32 float64 complex64 complex128"""
SMALL_DTYPES = """bfloat16 int2 uint2 int4 uint4 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
    float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"""
DTYPES = [np.dtype(name) for name in NUMPY_DTYPES.split()]
DTYPES += [np.dtype(getattr(ml_dtypes, name)) for name in SMALL_DTYPES.split()]


@pytest.fixture(scope="module")
def cpu():
    return xla.devices("cpu")[0]


@pytest.fixture
def fresh():
    """No executable in memory, before and after, and no cache on disk."""
    xla.configure(cache_dir="")
    xla.clear_cache()
    yield
    xla.clear_cache()


@pytest.fixture
def cache_folder(tmp_path, fresh):
    xla.configure(cache_dir=str(tmp_path / "programs"))
    yield tmp_path / "programs"
    xla.configure(cache_dir="")


def sample(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Different values of a type, some negative where it has such, and a NaN where it has one."""
    x = (np.arange(np.prod(shape, dtype=int)) % 3 - (dtype.kind not in "bu")).astype(dtype).reshape(shape)
    if dtype.kind in "fc" and x.size > 1:
        x.flat[-1] = np.nan
    return x


def aligned(x: np.ndarray, offset: int = 0) -> np.ndarray:
    """A copy whose address is `offset` more than a multiple of 64."""
    memory = np.empty(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal type, shape and bits."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


# ------------------------------------------------------------------------------------------------ buffers


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)], ids=str)
def test_round_trip_of_every_type(cpu, dtype, shape):
    x = sample(dtype, shape)
    y = xla.get(xla.put(x, cpu))
    assert same(x, y)
    assert y.dtype.isnative
    assert not y.flags.writeable


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-2],
        np.arange(24).reshape(2, 3, 4)[:, ::2, 1:],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.arange(5, dtype=">f8"),
        np.arange(6, dtype=">i4").reshape(2, 3).T,
        np.array(258, dtype=">u2"),
        np.asfortranarray(np.arange(6, dtype=np.complex64).reshape(2, 3)),
    ],
    ids=["transposed", "reversed", "strided", "broadcast", "big", "big-transposed", "big-scalar", "fortran"],
)
def test_put_takes_any_memory_layout(cpu, x):
    y = xla.get(xla.put(x, cpu))
    np.testing.assert_array_equal(x, y)
    assert y.dtype == x.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "x", [np.float32(1.5), np.bool_(True), np.int8(-3), np.complex128(1 + 2j), 2.5, 7, True, 3j], ids=repr
)
def test_put_takes_scalars(cpu, x):
    y = xla.get(xla.put(x, cpu))
    assert same(np.asarray(x), y)


def test_put_bfloat16_scalar(cpu):
    x = ml_dtypes.bfloat16(1.25)
    assert xla.get(xla.put(x, cpu)) == x


@pytest.mark.parametrize("x", [np.array(["a"]), np.array([None]), np.longdouble(1), np.zeros(2, "M8[D]")])
def test_put_names_a_type_that_xla_lacks(cpu, x):
    with pytest.raises(xla.XlaError, match=r"put: .* on cpu:0: .*dtype") as info:
        xla.put(x, cpu)
    assert str(x.dtype) in str(info.value).splitlines()[0]


def test_aligned_memory_is_shared_and_kept_alive(cpu):
    x = aligned(np.arange(1000.0))
    address = x.ctypes.data
    buffer = xla.put(x, cpu)
    assert buffer.unsafe_buffer_pointer() == address
    del x
    y = xla.get(buffer)
    del buffer
    assert y.ctypes.data == address
    np.testing.assert_array_equal(y, np.arange(1000.0))


def test_unaligned_memory_is_copied(cpu):
    x = aligned(np.arange(1000.0), offset=8)
    y = xla.get(xla.put(x, cpu))
    assert not np.shares_memory(x, y)
    np.testing.assert_array_equal(x, y)


def test_results_are_shared_with_the_host_and_can_go_back_without_a_copy(cpu):
    executable = xla.compile(SINE, [((3,), F64)], [cpu])
    [buffer] = executable.execute([xla.put(np.arange(3.0), cpu)])
    y = xla.get(buffer)
    assert np.shares_memory(y, xla.get(buffer))
    assert np.shares_memory(y, xla.get(xla.put(y, cpu)))


def test_ready_and_deleted(cpu):
    buffer = xla.put(np.arange(3.0), cpu)
    xla.block_until_ready([buffer, buffer])
    assert xla.is_ready(buffer)
    assert not xla.is_deleted(buffer)
    view = xla.get(buffer)
    xla.delete(buffer)
    assert xla.is_deleted(buffer)
    np.testing.assert_array_equal(view, np.arange(3.0))  # the ndarray keeps the memory
    waits = (xla.get, xla.get_shards, xla.is_ready, lambda b: xla.block_until_ready([b]))
    for use in waits:
        with pytest.raises(xla.XlaError, match="deleted"):
            use(buffer)
    with pytest.raises(xla.XlaError, match=r"deleted or donated: \[0\]"):
        xla.compile(SINE, [((3,), F64)], [cpu]).execute([buffer])
    xla.delete(buffer)  # twice is once


def test_device_of(cpu):
    buffer = xla.put(1.0, cpu)
    assert xla.device_of(buffer) is cpu
    assert xla.devices_of(buffer) == (cpu,)
    assert xla.copy_to_device(buffer, cpu) is buffer
    [result] = xla.compile(SINE, [((3,), F64)], [cpu]).execute([xla.put(np.zeros(3), cpu)])
    assert xla.device_of(result) is cpu


# -------------------------------------------------------------------------------------------- executables


def test_execute(cpu):
    text = """func.func public @main(%x: tensor<2x3xf64>, %y: tensor<i32>)
        -> (tensor<3x2xf64>, tensor<i32>, tensor<0xf32>) {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>
      %1 = stablehlo.negate %y : tensor<i32>
      %2 = stablehlo.constant dense<[]> : tensor<0xf32>
      return %0, %1, %2 : tensor<3x2xf64>, tensor<i32>, tensor<0xf32>
    }"""
    types = [((3, 2), F64), ((), I32), ((0,), np.dtype("float32"))]
    x = np.arange(6.0).reshape(2, 3)
    results = xla.compile(text, types, [cpu]).execute([xla.put(x, cpu), xla.put(np.int32(5), cpu)])
    a, b, c = map(xla.get, results)
    assert same(a, np.ascontiguousarray(x.T))
    assert same(b, np.array(-5, np.int32))
    assert same(c, np.empty(0, np.float32))


def test_execute_without_arguments_and_without_results(cpu):
    one = """func.func public @main() -> tensor<f64> {
      %0 = stablehlo.constant dense<1.0> : tensor<f64>
      return %0 : tensor<f64>
    }"""
    [result] = xla.compile(one, [((), F64)], [cpu]).execute([])
    assert xla.get(result) == 1.0
    nothing = "func.func public @main(%x: tensor<f64>) { return }"
    assert xla.compile(nothing, [], [cpu]).execute([xla.put(1.0, cpu)]) == []


@pytest.mark.parametrize("dtype, name", [(ml_dtypes.bfloat16, "bf16"), (ml_dtypes.int4, "i4"), (np.float16, "f16")])
def test_results_of_small_types(cpu, dtype, name):
    text = f"""func.func public @main(%x: tensor<3x{name}>) -> tensor<3x{name}> {{
      %0 = stablehlo.add %x, %x : tensor<3x{name}>
      return %0 : tensor<3x{name}>
    }}"""
    x = np.arange(3).astype(dtype)
    [result] = xla.compile(text, [((3,), np.dtype(dtype))], [cpu]).execute([xla.put(x, cpu)])
    assert same(xla.get(result), x + x)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            SINE.replace("sine", "sinus"),
            r"line 2 of the StableHLO module: .*sinus.*\n    %0 = stablehlo.sinus",
        ),
        (
            SINE.replace("-> tensor<3xf64> {", "-> tensor<4xf64> {"),
            r"line 3 .*'tensor<3xf64>'.*'tensor<4xf64>'",
        ),
        (SINE.replace("return %0", "return %9"), r"line 3 .* undeclared SSA value name\n    return %9"),
        ("", "XLA could not compile the program: "),
        (
            SINE.replace(
                "stablehlo.sine %x :",
                "stablehlo.custom_call @nowhere(%x) {api_version = 4 : i32} : (tensor<3xf64>) ->",
            ),
            r"XLA could not compile the program: .*nowhere",
        ),
    ],
    ids=["operation", "type", "value", "empty", "target"],
)
def test_compile_errors(cpu, text, message):
    before = xla.compile_count
    with pytest.raises(xla.XlaError, match=message) as info:
        xla.compile(text, [((3,), F64)], [cpu])
    assert len(str(info.value).splitlines()[0]) < 300
    assert xla.compile_count == before


def test_bad_options_and_devices(cpu):
    with pytest.raises(xla.XlaError, match="No such compile option: 'no_such'"):
        xla.compile(SINE, [((3,), F64)], [cpu], options={"no_such": 1})
    with pytest.raises(ValueError, match="2 replicas of 1 partitions need 2 devices, got 1"):
        xla.compile(SINE, [((3,), F64)], [cpu], num_replicas=2)
    with pytest.raises(ValueError, match="need 1 devices, got 0"):
        xla.compile(SINE, [((3,), F64)], [])


def test_execute_errors(cpu):
    executable = xla.compile(SINE, [((3,), F64)], [cpu])
    x = xla.put(np.zeros(3), cpu)
    for arguments, message in [
        ([], "supplied 0 arguments but compiled program expected 1"),
        ([x, x], "supplied 2 arguments but compiled program expected 1"),
        ([xla.put(np.zeros(4), cpu)], "size 24"),
    ]:
        with pytest.raises(xla.XlaError, match=f"XLA could not run the program: (.|\n)*{message}"):
            executable.execute(arguments)
    with pytest.raises(TypeError):
        executable.execute([np.zeros(3)])


def test_running_out_of_memory_is_an_error(cpu):
    text = """func.func public @main(%x: tensor<f64>) -> tensor<100000000x100000xf64> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f64>) -> tensor<100000000x100000xf64>
      return %0 : tensor<100000000x100000xf64>
    }"""
    executable = xla.compile(text, [((100000000, 100000), F64)], [cpu])
    with pytest.raises(xla.XlaError, match="Out of memory"):
        xla.block_until_ready(executable.execute([xla.put(1.0, cpu)]))


def cholesky(n: int, config: str = "uplo = 76 : ui8", before: str = "", operand: str = "%x") -> str:
    matrix = f"tensor<{n}x{n}xf64>"
    return f"""func.func public @main(%x: {matrix}) -> ({matrix}, tensor<i32>) {{
      {before}
      %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi({operand}) {{
        api_version = 4 : i32, backend_config = {{{config}}},
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
      }} : ({matrix}) -> ({matrix}, tensor<i32>)
      return %0#0, %0#1 : {matrix}, tensor<i32>
    }}"""


MATRIX = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]])


def test_lapack(cpu):
    executable = xla.compile(cholesky(3), [((3, 3), F64), ((), I32)], [cpu])
    factor, info = map(xla.get, executable.execute([xla.put(MATRIX, cpu)]))
    assert info == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(MATRIX), rtol=1e-14)


def test_a_failure_is_raised_by_execute_or_where_the_result_is_used(cpu):
    n = 1000  # large enough that XLA's threads may be at work when `execute` returns
    square = f"%y = stablehlo.dot %x, %x : (tensor<{n}x{n}xf64>, tensor<{n}x{n}xf64>) -> tensor<{n}x{n}xf64>"
    text = cholesky(n, config="", before=square, operand="%y")  # lacks the attribute uplo
    executable = xla.compile(text, [((n, n), F64), ((), I32)], [cpu])
    for use in (xla.block_until_ready, lambda r: xla.get(r[0]), lambda r: xla.get_shards(r[1])):
        with pytest.raises(xla.XlaError, match="Wrong number of attributes"):
            use(executable.execute([xla.put(np.ones((n, n)), cpu)]))


def test_donation_never_writes_to_numpy_memory(cpu):
    text = """func.func public @main(%x: tensor<100xf64> {tf.aliasing_output = 0 : i32}) -> tensor<100xf64> {
      %0 = stablehlo.negate %x : tensor<100xf64>
      return %0 : tensor<100xf64>
    }"""
    executable = xla.compile(text, [((100,), F64)], [cpu])
    assert executable.memory_analysis()["alias_size_in_bytes"] == 800
    x = aligned(np.arange(100.0))
    first = xla.put(x, cpu)
    [second] = executable.execute([first])
    assert xla.is_deleted(first)
    np.testing.assert_array_equal(x, np.arange(100.0))
    view = xla.get(second)
    [third] = executable.execute([second])
    np.testing.assert_array_equal(view, -np.arange(100.0))  # a live view is not overwritten either
    np.testing.assert_array_equal(xla.get(third), np.arange(100.0))


def test_serialize(cpu):
    compiled = xla.compile(SINE, [((3,), F64)], [cpu])
    before = xla.compile_count
    loaded = xla.deserialize(compiled.serialize(), [((3,), F64)], [cpu])
    x = xla.put(np.arange(3.0), cpu)
    assert same(xla.get(loaded.execute([x])[0]), xla.get(compiled.execute([x])[0]))
    assert xla.compile_count == before
    for damaged in (b"", b"nonsense", compiled.serialize()[:100]):
        with pytest.raises(xla.XlaError, match="could not load the serialized program"):
            xla.deserialize(damaged, [((3,), F64)], [cpu])


def test_analyses(cpu):
    text = """func.func public @main(%x: tensor<8x8xf64>) -> tensor<8x8xf64> {
      %0 = stablehlo.dot %x, %x : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
      return %0 : tensor<8x8xf64>
    }"""
    executable = xla.compile(text, [((8, 8), F64)], [cpu])
    assert executable.hlo_text().startswith("HloModule")
    assert "f64[8,8]" in executable.hlo_text()
    sizes = executable.memory_analysis()
    assert sizes["argument_size_in_bytes"] == sizes["output_size_in_bytes"] == 8 * 8 * 8
    assert set(sizes) >= {"temp_size_in_bytes", "generated_code_size_in_bytes"}
    assert executable.cost_analysis()["flops"] == 2 * 8**3


# ------------------------------------------------------------------------------------------------- caches


def counters() -> np.ndarray:
    return np.array([xla.compile_count, xla.cache_hits, xla.disk_cache_hits])


def test_memory_cache(cpu, fresh):
    start = counters()
    one = xla.compile(SINE, [((3,), F64)], [cpu])
    assert xla.compile("".join(list(SINE)), [((3,), F64)], (cpu,)) is one
    assert list(counters() - start) == [1, 1, 0]
    options = {"xla_backend_optimization_level": 1, "xla_disable_hlo_passes": "fusion"}
    other = xla.compile(SINE, [((3,), F64)], [cpu], options=options)
    assert other is not one
    assert xla.compile(SINE, [((3,), F64)], [cpu], options=dict(reversed(options.items()))) is other
    assert list(counters() - start) == [2, 2, 0]


def test_an_option_takes_effect(cpu):
    text = SINE.replace("sine %x : tensor<3xf64>", "add %x, %x : tensor<3xf64>").replace(
        "return %0", "%1 = stablehlo.multiply %0, %x : tensor<3xf64>\n return %1"
    )
    fused, unfused = (
        xla.compile(text, [((3,), F64)], [cpu], options={"xla_disable_hlo_passes": passes}).hlo_text()
        for passes in ("", "fusion")
    )
    assert "fused_computation" in fused
    assert "fused_computation" not in unfused


def test_threads_that_want_one_program_compile_it_once(cpu, fresh):
    start = counters()
    barrier = threading.Barrier(8)
    found = []

    def work():
        barrier.wait()
        executable = xla.compile(SINE, [((3,), F64)], [cpu])
        for i in range(50):
            [y] = executable.execute([xla.put(np.full(3, float(i)), cpu)])
            np.testing.assert_allclose(xla.get(y), np.sin(i), rtol=1e-15)
        found.append(executable)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert list(counters() - start) == [1, 7, 0]


def run_sine(cpu) -> np.ndarray:
    executable = xla.compile(SINE, [((3,), F64)], [cpu])
    return xla.get(executable.execute([xla.put(np.arange(3.0), cpu)])[0])


def test_disk_cache(cpu, cache_folder):
    start = counters()
    expected = run_sine(cpu)
    [file] = cache_folder.iterdir()
    xla.clear_cache()
    assert same(run_sine(cpu), expected)
    assert list(counters() - start) == [1, 0, 1]
    xla.clear_cache()
    xla.compile(SINE, [((3,), F64)], [cpu], options={"xla_backend_optimization_level": 1})
    assert list(counters() - start) == [2, 0, 1]
    assert len(list(cache_folder.iterdir())) == 2
    assert file.suffix == ".xla"


@pytest.mark.parametrize("damage", ["empty", "truncated", "changed", "not an executable"])
def test_a_damaged_file_is_compiled_again_and_replaced(cpu, cache_folder, damage):
    expected = run_sine(cpu)
    [file] = cache_folder.iterdir()
    whole = file.read_bytes()
    if damage == "not an executable":  # what a file of another XLA could look like: its checksum is right
        disk_cache.store(str(cache_folder), file.stem, b"nonsense")
    else:
        changed = whole[:-1] + bytes([whole[-1] ^ 1])
        file.write_bytes({"empty": b"", "truncated": whole[: len(whole) // 2], "changed": changed}[damage])
    xla.clear_cache()
    start = counters()
    assert same(run_sine(cpu), expected)
    xla.clear_cache()
    assert same(run_sine(cpu), expected)
    assert list(counters() - start) == [1, 0, 1]
    assert list(cache_folder.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_costs_a_warning(cpu, fresh, tmp_path):
    (tmp_path / "file").write_text("")
    xla.configure(cache_dir=str(tmp_path / "file" / "programs"))
    try:
        with pytest.warns(RuntimeWarning, match="cannot write the cache of compiled programs"):
            run_sine(cpu)
    finally:
        xla.configure(cache_dir="")
