"""Random sequences of operations against a model of the seeds, compared after every step."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from contract_tests.directory.versions_machine import VersionsMachine

UNHURRIED = settings(
    max_examples=50,
    stateful_step_count=30,
    deadline=None,  # each step changes a disk that others use too
    phases=[Phase.generate],  # for the same reason the first example that fails is shown as it is
    derandomize=True,  # each kind of operation must have succeeded at the end
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

WITHOUT_MANIFEST = {"create", "declare", "load", "deregister", "drop", "commit"} | {
    "create version",
    "create versions",
    "list versions",
    "describe version",
    "load version",
    "delete versions",
}
IN_MANIFEST = {"create namespace", "drop namespace", "set namespace properties", "register", "rename"}


@pytest.mark.parametrize(
    ("mode", "managing", "operations"),
    [
        ("compat", False, WITHOUT_MANIFEST | IN_MANIFEST),
        ("v1", False, WITHOUT_MANIFEST),
        ("v2", False, WITHOUT_MANIFEST | IN_MANIFEST),
        ("compat", True, WITHOUT_MANIFEST | IN_MANIFEST),
        ("v2", True, WITHOUT_MANIFEST | IN_MANIFEST),
    ],
    ids=["compat", "v1", "v2", "compat, managed", "v2, managed"],
)
def test_any_sequence_of_operations_ends_as_the_seeds_say(mode: str, managing: bool, operations: set[str]) -> None:
    seen: Counter[str] = Counter()

    class MachineInMode(VersionsMachine):
        def __init__(self) -> None:
            super().__init__(mode, managing, seen)

    run_state_machine_as_test(MachineInMode, settings=UNHURRIED)
    assert operations <= seen.keys()
