"""Mountain Car, as Jiang & Li (2016) simulate it."""

from offpolicy_mountain_car.domain import MountainCar
from offpolicy_mountain_car.policies import AlongVelocity

__all__ = ["AlongVelocity", "MountainCar"]
