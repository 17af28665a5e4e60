"""`ragged_all_to_all`: an exchange along a named axis of pieces that differ in length.

May import: `lax.collectives` and what is below it.
"""

from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.lax.arithmetic import add_p, div_p, mul_p, sub_p
from xform.lax.bitwise import and_p
from xform.lax.collectives import all_gather, all_to_all, axis_size, no_groups
from xform.lax.comparison import eq_p, ge_p, lt_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xform.lax.reductions import reduce_max_p, reduce_sum_p
from xform.lax.shapes import broadcast_in_dim, iota_p, reshape

_INDEX = np.dtype(np.int64)


@api_boundary
def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Exchange pieces of different lengths along a named axis.

    Each position sends the rows ``operand[input_offsets[i] : input_offsets[i] + send_sizes[i]]``, n of these pieces to
    each position in turn, where they replace the rows of `output` from ``output_offsets[i]`` on.

    Parameters
    ----------
    operand, output : arrays of one dtype, equal but for the first axis
    input_offsets, send_sizes, output_offsets : (n * axis size,) integer arrays
    recv_sizes : (n * axis size,) integer array
        What the others send here: not needed, and not checked.

    Returns
    -------
    Array like `output`

    Notes
    -----
    All operands go everywhere, and each position picks its rows. Pieces that overlap: the one of the last sender stays.
    """
    no_groups("ragged_all_to_all", axis_index_groups)
    name, size = "ragged_all_to_all", axis_size(axis_name)
    x, out = get_aval(operand), get_aval(output)
    pieces = {get_aval(a).shape for a in (input_offsets, send_sizes, output_offsets, recv_sizes)}
    (n,) = next(iter(pieces)) if len(pieces) == 1 and len(next(iter(pieces))) == 1 else (-1,)
    if n < 0 or n % size or x.dtype != out.dtype or not x.ndim or x.shape[1:] != out.shape[1:]:
        raise TypeError(
            f"lax.{name}: operand and output must agree but for their first axis, and offsets and sizes be vectors of "
            f"one length, a multiple of {size}, got {x.str_short()}, {out.str_short()} and {pieces}"
        )

    def mine(vector: Any) -> Any:
        """What the others say of the pieces that they send here, as a column."""
        return convert(reshape(all_to_all(vector, axis_name, 0, 0, tiled=True), (n, 1)), _INDEX)

    start, length, target = mine(input_offsets), mine(send_sizes), mine(output_offsets)
    shape = (n, out.shape[0])
    row = sub_p.bind(iota_p.bind(dtype=_INDEX, shape=shape, dimension=1), broadcast_in_dim(target, shape, (0, 1)))
    inside = and_p.bind(ge_p.bind(row, np.int64(0)), lt_p.bind(row, broadcast_in_dim(length, shape, (0, 1))))
    sender = iota_p.bind(dtype=_INDEX, shape=shape, dimension=0)
    base = mul_p.bind(div_p.bind(sender, np.int64(n // size)), np.int64(x.shape[0]))
    source = add_p.bind(add_p.bind(row, broadcast_in_dim(start, shape, (0, 1))), base)
    # Of the pieces that a row lies in, the last one; -1 for rows outside of all.
    last = reduce_max_p.bind(select_n_p.bind(inside, np.int64(-1), sender), axes=(0,))
    chosen = eq_p.bind(sender, broadcast_in_dim(last, shape, (1,)))
    source = reduce_sum_p.bind(select_n_p.bind(chosen, np.int64(0), source), axes=(0,))
    received = ge_p.bind(last, np.int64(0))
    sent = all_gather(operand, axis_name, tiled=True)
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,))
    window = (min(1, sent.shape[0]), *x.shape[1:])
    rows = gather(sent, reshape(source, (out.shape[0], 1)), numbers, window, mode=GatherScatterMode.CLIP)
    return select_n_p.bind(broadcast_in_dim(received, out.shape, (0,)), output, rows)
