"""Holds answers against the Iceberg REST specification, 1.9.0."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml
from jsonschema import Draft202012Validator, FormatChecker

SPECIFICATION = Path(__file__).parents[3] / "shared/spec/rest-catalog-open-api-1.9.0.yaml"

ERROR = "#/components/schemas/IcebergErrorResponse"
BEYOND_THE_SPECIFICATION = {
    ("getConfig", 404): "an unknown warehouse: declared from 1.11 on",
    ("createNamespace", 404): "a parent or a warehouse that does not exist",
}
"""Answers that the issue asks for and the specification does not declare."""


def is_int64(value: object) -> bool:
    return not isinstance(value, int | float) or -(2**63) <= value < 2**63


FORMATS = FormatChecker(formats=[])
FORMATS.checkers = {"int64": (is_int64, ())}


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    template: str
    responses: Mapping[str, Any]

    @property
    def endpoint(self) -> str:
        return f"{self.method} {self.template}"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        path = re.escape(self.template).replace(r"/v1/\{prefix\}", "/v1(/[^/]+)?")
        return re.compile(re.sub(r"\\{[^}]+\\}", "[^/]+", path))


class Specification:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = without_nullable(document)
        self.operations = [
            Operation(operation["operationId"], method.upper(), template, keyed(operation["responses"]))
            for template, item in self._document["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ]

    def find(self, method: str, path: str) -> Operation | None:
        found = [each for each in self.operations if each.method == method and each.pattern.fullmatch(path)]
        without_prefix = path.split("/")[2:3] in (["namespaces"], ["views"], ["tables"], ["transactions"])
        return max(found, key=lambda each: each.template.count("/") * (1 if without_prefix else -1), default=None)

    def check(self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raises AssertionError for an answer that the specification does not know."""
        if not path.startswith("/v1/"):
            return
        where = f"{method} {path} answered {status}"
        operation = self.find(method, path)
        if operation is None or status in (413, 414, 415, 431):
            assert status >= 400, f"{where}: the specification has no such operation"
            schema: Any = {"$ref": ERROR}
        else:
            schema = self._schema(operation, status, where)
        if method == "HEAD" or schema is None:
            assert not body, f"{where} with a body: {body[:200]!r}"
            return
        assert headers.get("content-type", "").startswith("application/json"), f"{where}: {dict(headers)}"
        error = next(self._validator(json.dumps(schema)).iter_errors(json.loads(body)), None)
        assert error is None, f"{where} with a wrong body at {error and error.json_path}: {error}"

    def _schema(self, operation: Operation, status: int, where: str) -> Any:
        if (operation.id, status) in BEYOND_THE_SPECIFICATION:
            return {"$ref": ERROR}
        response = operation.responses.get(str(status)) or operation.responses.get(f"{status // 100}XX")
        assert response is not None, f"{where}: not declared for {operation.id}"
        if "$ref" in response:
            response = self._document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        schema = response["content"]["application/json"]["schema"] if "content" in response else None
        # where the inner part alone is named, its example in the specification is the envelope all the same
        return {"$ref": ERROR} if schema == {"$ref": "#/components/schemas/ErrorModel"} else schema

    @cache  # noqa: B019 - one specification lives as long as the process
    def _validator(self, schema: str) -> Draft202012Validator:
        document = {"components": self._document["components"], **json.loads(schema)}
        return Draft202012Validator(document, format_checker=FORMATS)


def keyed(responses: Mapping[object, Any]) -> dict[str, Any]:
    return {str(status): response for status, response in responses.items()}


def without_nullable(node: Any) -> Any:
    """OpenAPI 3.0's `nullable`, which the 3.1 document still uses, as JSON Schema says it."""
    if isinstance(node, list):
        return [without_nullable(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {key: without_nullable(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def specification() -> Specification | None:
    if not SPECIFICATION.exists():
        return None
    return Specification(yaml.load(SPECIFICATION.read_text(), yaml.CSafeLoader))


def check_response(response: requests.Response, *_: object, **__: object) -> None:
    known = specification()
    if known is not None:
        path = urlsplit(response.request.url or "").path
        known.check(
            response.request.method or "", str(path), response.status_code, response.headers, response.content
        )


def watch(session: requests.Session) -> requests.Session:
    """From now on every answer that this session gets is checked."""
    session.hooks["response"].append(check_response)
    return session
