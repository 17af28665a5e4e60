"""The programs that are measured, written for xform; `Library.load` puts a peer in its place."""

import xform
import xform.numpy as jnp


def sin_times(x):
    """A sum that every tutorial differentiates."""
    return jnp.sum(jnp.sin(x) * x)


def pendulum(angle):
    """The angle of a pendulum that starts at rest, after 20 leapfrog steps in a Python loop."""
    momentum = 0.0
    for _ in range(20):
        momentum = momentum - 0.05 * jnp.sin(angle)
        angle = angle + 0.1 * momentum
        momentum = momentum - 0.05 * jnp.sin(angle)
    return angle


def mlp_gradient():
    """A new function: the gradient of a perceptron with as many layers as it is given, in a Python loop."""

    def loss(layers, x):
        for weights, bias in layers:
            x = jnp.tanh(x @ weights + bias)
        return jnp.sum(x**2)

    return xform.grad(loss)


def nbody_gradient(acceleration, steps):
    """A new function: the gradient of where `steps` velocity Verlet steps lead a system, unrolled.

    It takes a list of arrays of coordinates, `acceleration` the same.
    """

    def spread(q):
        p, a = [0.01 * x for x in q], acceleration(q)
        for _ in range(steps):
            p = [v + 0.005 * force for v, force in zip(p, a, strict=True)]
            q = [x + 0.01 * v for x, v in zip(q, p, strict=True)]
            a = acceleration(q)
            p = [v + 0.005 * force for v, force in zip(p, a, strict=True)]
        return sum(jnp.sum(x**2) for x in q)

    return xform.grad(spread)


def gravity_by_components(q):
    """How bodies of unit mass attract each other; `q` is [x, y, z], each an array (bodies,)."""
    apart = [x[None, :] - x[:, None] for x in q]
    weight = (sum(d * d for d in apart) + 0.01) ** -1.5
    return [jnp.sum(d * weight, axis=1) for d in apart]


def gravity_of_points(q):
    """The same; `q` is a list of one array (bodies, 3)."""
    apart = q[0][None, :, :] - q[0][:, None, :]
    weight = (jnp.sum(apart**2, axis=-1) + 0.01) ** -1.5
    return [jnp.sum(apart * weight[..., None], axis=1)]


def wave(speed, start):
    """The energy of a membrane after 200 steps; `speed` is the field of wave speeds, the rim wraps around."""

    def step(carry, _):
        now, before = carry
        around = jnp.roll(now, 1, 0) + jnp.roll(now, -1, 0) + jnp.roll(now, 1, 1) + jnp.roll(now, -1, 1)
        # A stiffening membrane: the wave speed falls where it is displaced.
        local = 0.1 * speed**2 / (1 + now**2)
        return (2 * now - before + local * (around - 4 * now), now), None

    (end, before), _ = xform.lax.scan(step, (start, start), None, length=200)
    return jnp.sum((end - before) ** 2)


def heat(conductivity, start):
    """The square of a plate's temperatures after 100 steps, summed; what lies on the rim stays as it is."""

    def step(u, _):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].add(0.1 * conductivity[1:-1, 1:-1] * (around - 4 * u[1:-1, 1:-1])), None

    end, _ = xform.lax.scan(step, start, None, length=100)
    return jnp.sum(end**2)


def perceptron(layers, x):
    """The loss of a perceptron."""
    for weights, bias in layers:
        x = jnp.tanh(x @ weights + bias)
    return jnp.mean(x**2)


def lennard_jones(positions):
    """The energy of particles (N, 3) as it is written down: all differences, sums over the last axis."""
    apart = positions[:, None, :] - positions[None, :, :]
    r2 = jnp.sum(apart**2, axis=-1) + jnp.eye(len(positions))
    r6 = 1 / r2**3
    return jnp.sum(2 * (r6 * r6 - r6) * (1 - jnp.eye(len(positions))))


def lennard_jones_step(points, momenta):
    """Half a leapfrog step: kick and drift."""
    momenta = momenta - 0.001 * xform.grad(lennard_jones)(points)
    return points + 0.001 * momenta, momenta


def matrix_chain_gradient():
    """A new function: the gradient of what a list of matrices, one after the other, makes of a vector."""

    def loss(matrices, x):
        for matrix in matrices:
            x = matrix @ x
        return jnp.sum(x**2)

    return xform.grad(loss)
