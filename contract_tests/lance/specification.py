"""Holds answers against the Lance REST Namespace specification, 0.11."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml
from jsonschema import Draft202012Validator

from contract_tests.strangers.openapi import FORMATS, Operation, keyed, without_nullable

SPECIFICATION = Path(__file__).parents[3] / "shared/spec/lance-rest-namespace-0.11.yaml"
ABSENT = f"there is no {SPECIFICATION.name}"

ERROR = {"$ref": "#/components/schemas/ErrorResponse"}
BEYOND_THE_SPECIFICATION = {404, 405, 406, 409, 413, 414, 415, 431}
"""What it declares for some operations only, or leaves to HTTP."""


class Specification:
    def __init__(self, document: dict[str, Any]) -> None:
        self._components = without_nullable(document["components"])
        self.operations = [
            Operation(operation["operationId"], method.upper(), template, keyed(operation["responses"]))
            for template, item in document["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ]
        # a word of the protocol comes before a name that is spelled like it
        in_order = sorted(self.operations, key=lambda each: each.template.count("{"))
        self._patterns = [(_pattern(each.template), each) for each in in_order]

    def find(self, method: str, path: str) -> Operation | None:
        found = (each for pattern, each in self._patterns if each.method == method and pattern.fullmatch(path))
        return next(found, None)

    def check(self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raises AssertionError for an answer that the specification does not know."""
        where = f"{method} {path} answered {status}"
        operation = self.find(method, path)
        if operation is None:
            assert status in (404, 405), f"{where}: the specification has no such operation"
        schema = ERROR if operation is None else self._schema(operation, status, where)
        if schema is None:
            assert not body, f"{where} with a body: {body[:200]!r}"
            return
        assert headers.get("content-type", "").startswith("application/json"), f"{where}: {dict(headers)}"
        error = next(self._validator(json.dumps(schema)).iter_errors(json.loads(body)), None)
        assert error is None, f"{where} with a wrong body at {error and error.json_path}: {error}"

    def _schema(self, operation: Operation, status: int, where: str) -> Any:
        response = operation.responses.get(str(status)) or operation.responses.get(f"{status // 100}XX")
        if response is None:
            assert status in BEYOND_THE_SPECIFICATION, f"{where}: not declared for {operation.id}"
            return ERROR
        if "$ref" in response:
            response = self._components["responses"][response["$ref"].rsplit("/", 1)[1]]
        return response["content"]["application/json"]["schema"] if "content" in response else None

    @cache  # noqa: B019 - one specification lives as long as the process
    def _validator(self, schema: str) -> Draft202012Validator:
        return Draft202012Validator({"components": self._components, **json.loads(schema)}, format_checker=FORMATS)


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile("/lance(/[^/]+)?" + re.sub(r"\\{[^}]+\\}", "[^/]*", re.escape(template)))


@cache
def specification() -> Specification | None:
    if not SPECIFICATION.exists():
        return None
    return Specification(yaml.load(SPECIFICATION.read_text(), yaml.CSafeLoader))


def check_response(response: requests.Response, *_: object, **__: object) -> None:
    known = specification()
    if known is not None:
        path = str(urlsplit(response.request.url or "").path)
        method, status = response.request.method or "", response.status_code
        known.check(method, path, status, response.headers, response.content)
