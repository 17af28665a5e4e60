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


def lennard_jones(points):
    """The energy of particles with unit parameters; `points` is an array (particles, 3)."""
    apart = points[:, None, :] - points[None, :, :]
    self = jnp.eye(len(points))
    weight = (1 / (jnp.sum(apart**2, axis=-1) + self)) ** 3
    return 2 * jnp.sum((weight**2 - weight) * (1 - self))


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
