"""Where programs run: `xla` compiles StableHLO text for CPU, GPU and TPU, `numpy` is the host's part.

Backends know nothing of tracers, avals or jaxprs. They import nothing of xform outside this folder.
"""
