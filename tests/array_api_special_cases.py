"""The special cases of the Python array API standard, version 2025.12, as tables.

A line is a function with its cases, "arguments:result". Letters stand for sets of numbers: p positive, n negative and
f finite ones that aren't zero, o zeros, i infinities, a all of these and NaN. As results x and y are the arguments,
a tilde leaves the sign open, and a bar separates what the standard leaves to choose from.
"""

SETS = {"p": ["0.5", "1", "3"], "n": ["-0.5", "-1", "-3"], "o": ["0", "-0"], "i": ["inf", "-inf"]}
SETS["f"] = SETS["p"] + SETS["n"]
SETS["a"] = SETS["f"] + SETS["o"] + SETS["i"] + ["nan"]


def table(text: str) -> dict[str, str]:
    """The entries of a table; those that take several lines are indented."""
    out: dict[str, str] = {}
    name = ""
    for line in text.strip("\n").splitlines():
        name = line[:18].strip() or name
        out[name] = f"{out.get(name, '')} {line[18:]}"
    return out


# Real numbers: "x:f(x)" and "x,y:f(x,y)".
REAL = table("""
    abs           nan:nan -0:0 -inf:inf
    acos          nan:nan 3:nan inf:nan -3:nan -inf:nan 1:0
    acosh         nan:nan 0.5:nan o:nan n:nan -inf:nan 1:0 inf:inf
    asin          nan:nan 3:nan inf:nan -3:nan -inf:nan 0:0 -0:-0
    asinh         nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    atan          nan:nan 0:0 -0:-0 inf:pi/2 -inf:-pi/2
    atanh         nan:nan -3:nan -inf:nan 3:nan inf:nan -1:-inf 1:inf 0:0 -0:-0
    ceil          inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3 -3:-3 -0.5:-0
    cos           nan:nan 0:1 -0:1 inf:nan -inf:nan
    cosh          nan:nan 0:1 -0:1 inf:inf -inf:inf
    exp           nan:nan 0:1 -0:1 inf:inf -inf:0
    expm1         nan:nan 0:0 -0:-0 inf:inf -inf:-1
    floor         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3 -3:-3 0.5:0
    isfinite      i:0 nan:0 f:1 o:1
    isinf         i:1 nan:0 f:0 o:0
    isnan         nan:1 i:0 f:0 o:0
    log           nan:nan n:nan -inf:nan o:-inf 1:0 inf:inf
    log10         nan:nan n:nan -inf:nan o:-inf 1:0 inf:inf
    log1p         nan:nan -3:nan -inf:nan -1:-inf 0:0 -0:-0 inf:inf
    log2          nan:nan n:nan -inf:nan o:-inf 1:0 inf:inf
    negative      nan:nan 0:-0 -0:0 inf:-inf -inf:inf
    positive      nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    reciprocal    nan:nan 0:inf -0:-inf inf:0 -inf:-0
    round         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 0.5:0 1.5:2 2.5:2 -0.5:-0 -1.5:-2 -2.5:-2 3:3 -3:-3
    sign          n:-1 -inf:-1 o:0 p:1 inf:1 nan:nan
    signbit       0:0 -0:1 inf:0 -inf:1 p:0 n:1 nan:0
    sin           nan:nan 0:0 -0:-0 i:nan
    sinh          nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    sqrt          nan:nan n:nan -inf:nan 0:0 -0:-0 inf:inf
    square        nan:nan o:0 i:inf
    tan           nan:nan 0:0 -0:-0 i:nan
    tanh          nan:nan 0:0 -0:-0 inf:1 -inf:-1
    trunc         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3 -3:-3 0.5:0 -0.5:-0
    add           nan,a:nan a,nan:nan inf,-inf:nan -inf,inf:nan inf,inf:inf -inf,-inf:-inf inf,f:inf -inf,f:-inf
                  inf,o:inf -inf,o:-inf f,inf:inf f,-inf:-inf o,inf:inf o,-inf:-inf -0,-0:-0 -0,0:0 0,-0:0 0,0:0
                  f,o:x o,f:y 3,-3:0 -0.5,0.5:0
    atan2         nan,a:nan a,nan:nan p,o:pi/2 inf,o:pi/2 0,p:0 0,inf:0 0,0:0 0,-0:pi 0,n:pi 0,-inf:pi -0,p:-0
                  -0,inf:-0 -0,0:-0 -0,-0:-pi -0,n:-pi -0,-inf:-pi n,o:-pi/2 -inf,o:-pi/2 p,inf:0 p,-inf:pi
                  n,inf:-0 n,-inf:-pi inf,f:pi/2 -inf,f:-pi/2 inf,inf:pi/4 inf,-inf:3pi/4 -inf,inf:-pi/4
                  -inf,-inf:-3pi/4
    copysign      3,n:-3 3,-inf:-3 3,-0:-3 -3,0:3 -3,p:3 -3,inf:3 -3,nan:3 inf,n:-inf -inf,nan:inf -0,p:0 0,-0:-0
                  nan,a:nan
    divide        nan,a:nan a,nan:nan i,i:nan o,o:nan 0,p:0 0,inf:0 -0,p:-0 -0,inf:-0 0,n:-0 0,-inf:-0 -0,n:0
                  -0,-inf:0 p,0:inf inf,0:inf p,-0:-inf inf,-0:-inf n,0:-inf -inf,0:-inf n,-0:inf -inf,-0:inf
                  inf,p:inf inf,n:-inf -inf,p:-inf -inf,n:inf p,inf:0 p,-inf:-0 n,inf:-0 n,-inf:0
    floor_divide  nan,a:nan a,nan:nan i,i:nan o,o:nan 0,p:0 0,inf:0 -0,p:-0 -0,inf:-0 0,n:-0 0,-inf:-0 -0,n:0
                  -0,-inf:0 p,0:inf inf,0:inf|nan p,-0:-inf inf,-0:-inf|nan n,0:-inf -inf,0:-inf|nan n,-0:inf
                  -inf,-0:inf|nan inf,p:inf|nan inf,n:-inf|nan -inf,p:-inf|nan -inf,n:inf|nan p,inf:0
                  p,-inf:-0|-1 n,inf:-0|-1 n,-inf:0 7,2:3 -7,2:-4 7,-2:-4 -7,-2:3
    hypot         i,a:inf a,i:inf o,p:y p,o:x o,-3:3 -3,o:3 o,o:0 f,nan:nan o,nan:nan nan,f:nan nan,o:nan nan,nan:nan
    logaddexp     nan,a:nan a,nan:nan inf,f:inf inf,o:inf inf,i:inf f,inf:inf o,inf:inf -inf,inf:inf
    maximum       nan,a:nan a,nan:nan inf,f:inf -inf,f:y
    minimum       nan,a:nan a,nan:nan inf,f:y -inf,f:-inf
    multiply      nan,a:nan a,nan:nan i,o:nan o,i:nan inf,inf:inf inf,-inf:-inf -inf,inf:-inf -inf,-inf:inf inf,p:inf
                  inf,n:-inf -inf,p:-inf -inf,n:inf p,inf:inf p,-inf:-inf n,inf:-inf n,-inf:inf 0,p:0 0,n:-0 -0,n:0
                  -0,p:-0 p,0:0 n,0:-0 n,-0:0 p,-0:-0 0,0:0 0,-0:-0 -0,0:-0 -0,-0:0
    nextafter     nan,a:nan a,nan:nan -0,0:0 0,-0:-0 3,3:3
    pow           0.5,nan:nan 3,nan:nan n,nan:nan o,nan:nan i,nan:nan a,o:1 nan,f:nan nan,i:nan 3,inf:inf -3,inf:inf
                  i,inf:inf 3,-inf:0 -3,-inf:0 i,-inf:0 1,i:1 -1,i:1 1,a:1 0.5,inf:0 -0.5,inf:0 o,inf:0 0.5,-inf:inf
                  -0.5,-inf:inf o,-inf:inf inf,p:inf inf,n:0 -inf,3:-inf -inf,1:-inf -inf,2:inf -inf,0.5:inf
                  -inf,1.5:inf -inf,-3:-0 -inf,-1:-0 -inf,-2:0 -inf,-0.5:0 0,p:0 0,n:inf -0,3:-0 -0,1:-0 -0,2:0
                  -0,0.5:0 -0,-3:-inf -0,-1:-inf -0,-2:inf -0,-0.5:inf n,1.5:nan n,0.5:nan n,-0.5:nan
    remainder     nan,a:nan a,nan:nan i,i:nan o,o:nan o,p:0 o,inf:0 o,n:-0 o,-inf:-0 f,o:nan i,o:nan i,f:nan p,inf:x
                  p,-inf:-inf n,inf:inf n,-inf:x 7,-2:-1 -7,2:1 6,-3:-0 -6,3:0 6,3:0 -6,-3:-0
    subtract      nan,a:nan a,nan:nan inf,inf:nan -inf,-inf:nan inf,-inf:inf -inf,inf:-inf inf,f:inf f,inf:-inf
                  f,-inf:inf 0,0:0 0,-0:0 -0,0:-0 -0,-0:0 f,o:x 3,3:0
    equal         nan,a:0 a,nan:0 inf,inf:1 -inf,-inf:1 inf,-inf:0 o,o:1 3,3:1 3,1:0 i,f:0
    not_equal     nan,a:1 a,nan:1 inf,inf:0 -inf,-inf:0 inf,-inf:1 -inf,inf:1 o,o:0 3,3:0 3,1:1 i,f:1
    less          nan,a:0 a,nan:0 -inf,inf:1 inf,inf:0 o,o:0
    less_equal    nan,a:0 a,nan:0 -inf,inf:1 inf,inf:1 o,o:1
    greater       nan,a:0 a,nan:0 inf,-inf:1 inf,inf:0 o,o:0
    greater_equal nan,a:0 a,nan:0 inf,-inf:1 inf,inf:1 o,o:1
    logical_and   nan,f:1 i,nan:1 o,a:0 a,o:0
    logical_or    nan,a:1 o,i:1 o,o:0
    logical_xor   nan,f:0 nan,o:1 i,o:1 o,o:0
    logical_not   nan:0 i:0 f:0 o:1
""")

# Complex numbers: "a,b:c,d" for f(a + bj) = c + dj. The conjugate has the conjugate result.
COMPLEX = table("""
    acos          o,0:pi/2,-0 o,nan:pi/2,nan f,inf:pi/2,-inf o,inf:pi/2,-inf f,nan:nan,nan -inf,p:pi,-inf inf,p:0,-inf
                  -inf,inf:3pi/4,-inf inf,inf:pi/4,-inf i,nan:nan,~inf nan,f:nan,nan nan,o:nan,nan nan,inf:nan,-inf
                  nan,nan:nan,nan
    acosh         o,0:0,pi/2 f,inf:inf,pi/2 o,inf:inf,pi/2 f,nan:nan,nan 0,nan:nan,~pi/2 -inf,p:inf,pi inf,p:inf,0
                  -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 i,nan:inf,nan nan,f:nan,nan nan,o:nan,nan nan,inf:inf,nan
                  nan,nan:nan,nan
    asinh         0,0:0,0 p,inf:inf,pi/2 f,nan:nan,nan o,nan:nan,nan inf,p:inf,0 inf,inf:inf,pi/4 nan,0:nan,0
                  nan,f:nan,nan nan,inf:~inf,nan nan,nan:nan,nan
    atanh         0,0:0,0 0,nan:0,nan 1,0:inf,0 p,inf:0,pi/2 f,nan:nan,nan inf,p:0,pi/2 inf,inf:0,pi/2 inf,nan:0,nan
                  nan,f:nan,nan nan,o:nan,nan nan,inf:~0,pi/2 nan,nan:nan,nan
    conj          0,0:0,-0 -0,inf:-0,-inf nan,-0:nan,0 inf,nan:inf,nan
    cosh          0,0:1,0 0,inf:nan,~0 0,nan:nan,~0 f,inf:nan,nan f,nan:nan,nan inf,0:inf,0 inf,1:inf,inf inf,2:-inf,inf
                  inf,4:-inf,-inf inf,5:inf,-inf inf,inf:~inf,nan inf,nan:inf,nan nan,o:nan,~0 nan,f:nan,nan
                  nan,nan:nan,nan
    exp           o,0:1,0 f,inf:nan,nan o,inf:nan,nan -1000,inf:nan,nan f,nan:nan,nan o,nan:nan,nan inf,0:inf,0
                  -inf,0:0,0 -inf,1:0,0 -inf,2:-0,0 -inf,4:-0,-0 -inf,5:0,-0 inf,1:inf,inf inf,2:-inf,inf
                  inf,4:-inf,-inf inf,5:inf,-inf -inf,inf:~0,~0 inf,inf:~inf,nan -inf,nan:~0,~0 inf,nan:~inf,nan
                  nan,0:nan,0 nan,f:nan,nan nan,inf:nan,nan nan,nan:nan,nan
    expm1         o,0:0,0 f,inf:nan,nan o,inf:nan,nan -1000,inf:nan,nan f,nan:nan,nan o,nan:nan,nan inf,0:inf,0
                  -inf,0:-1,0 -inf,1:-1,0 -inf,2:-1,0 -inf,4:-1,-0 inf,1:inf,inf inf,2:-inf,inf inf,4:-inf,-inf
                  -inf,inf:-1,~0 inf,inf:~inf,nan -inf,nan:-1,~0 inf,nan:~inf,nan nan,0:nan,0 nan,f:nan,nan
                  nan,inf:nan,nan nan,nan:nan,nan
    log           -0,0:-inf,pi 0,0:-inf,0 f,inf:inf,pi/2 o,inf:inf,pi/2 f,nan:nan,nan o,nan:nan,nan -inf,p:inf,pi
                  inf,p:inf,0 -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 i,nan:inf,nan nan,f:nan,nan nan,o:nan,nan
                  nan,inf:inf,nan nan,nan:nan,nan
    log1p         -1,0:-inf,0 f,inf:inf,pi/2 o,inf:inf,pi/2 f,nan:nan,nan o,nan:nan,nan -inf,p:inf,pi inf,p:inf,0
                  -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 i,nan:inf,nan nan,f:nan,nan nan,o:nan,nan nan,inf:inf,nan
                  nan,nan:nan,nan
    negative      0,0:-0,-0 -0,inf:0,-inf nan,-0:nan,0 -inf,nan:inf,nan
    round         2.5,-0.5:2,-0 inf,nan:inf,nan -0,1.5:-0,2 nan,-inf:nan,-inf 3,0:3,0
    sign          o,0:0,0 o,-0:0,0 nan,f:nan,nan nan,o:nan,nan f,nan:nan,nan o,nan:nan,nan nan,nan:nan,nan 3,4:0.6,0.8
    sinh          0,0:0,0 0,inf:~0,nan 0,nan:~0,nan p,inf:nan,nan 1000,inf:nan,nan p,nan:nan,nan inf,0:inf,0
                  inf,1:inf,inf inf,2:-inf,inf inf,3:-inf,inf inf,inf:~inf,nan inf,nan:~inf,nan nan,0:nan,0
                  nan,f:nan,nan nan,nan:nan,nan
    sqrt          o,0:0,0 a,inf:inf,inf f,nan:nan,nan o,nan:nan,nan -inf,p:0,inf inf,p:inf,0 inf,nan:inf,nan
                  -inf,nan:nan,~inf nan,f:nan,nan nan,o:nan,nan nan,nan:nan,nan
    tanh          0,0:0,0 f,inf:nan,nan f,nan:nan,nan 0,inf:0,nan 0,nan:0,nan inf,p:1,0 inf,inf:1,~0
                  inf,nan:1,~0 nan,0:nan,0 nan,f:nan,nan nan,inf:nan,nan nan,nan:nan,nan
""")

# Where NumPy differs from the standard, which has NaN + NaN j for all with a NaN, and xform follows NumPy.
NUMPYS = table("""
    sign          inf,nan:1,0 -inf,nan:-1,0 nan,inf:0,1
""")
