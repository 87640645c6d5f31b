"""One tree of errors. A class knows its HTTP status, its Iceberg exception type and its Lance code.

    BridgeError
    ├── InvalidInput                  400  BadRequestException          13
    │   ├── RequestTimeout            408
    │   ├── BodyTooLarge              413
    │   ├── QueryTooLong              414
    │   ├── UnsupportedMediaType      415
    │   └── HeadTooLarge              431
    ├── Unauthenticated               401  NotAuthorizedException       16
    ├── PermissionDenied              403  ForbiddenException           15
    ├── NotFound                      404
    │   ├── WarehouseNotFound              NoSuchWarehouseException      1
    │   ├── NamespaceNotFound              NoSuchNamespaceException      1
    │   ├── TableNotFound                  NoSuchTableException          4
    │   ├── TableVersionNotFound           NoSuchTableException         11
    │   ├── TagNotFound                    NotFoundException             8
    │   ├── ViewNotFound                   NoSuchViewException           4
    │   ├── PlanNotFound                   NoSuchPlanIdException        10
    │   ├── PlanTaskNotFound               NoSuchPlanTaskException      10
    │   └── RouteNotFound                  NoSuchEndpointException       0
    ├── MethodNotAllowed              405                                0
    ├── Unsupported                   406  UnsupportedOperationException 0
    ├── Conflict                      409
    │   ├── NamespaceAlreadyExists         AlreadyExistsException        2
    │   ├── NamespaceNotEmpty              NamespaceNotEmptyException    3
    │   ├── TableAlreadyExists             AlreadyExistsException        5
    │   ├── TagAlreadyExists               AlreadyExistsException        9
    │   ├── TableVersionAlreadyExists      CommitFailedException        12
    │   ├── ConcurrentModification         CommitFailedException        14
    │   └── CommitFailed                   CommitFailedException        14
    ├── Unprocessable                 422  UnprocessableEntityException 13
    ├── Throttled                     429  TooManyRequestsException     21
    ├── ServiceUnavailable            503  ServiceUnavailableException  17
    │   ├── BadGateway                502  an upstream server broke off
    │   └── GatewayTimeout            504  an upstream server did not answer in time
    └── Internal                      500  InternalServerError          18
        ├── BrokenTable                    one table's files cannot be read
        └── CommitStateUnknown             CommitStateUnknownException; 502 or 504 for an upstream's

The codes are those of the Lance namespace seeds. A message may reach a client as it is: it says what
happened, to what, and what to do, and holds no secret.
"""

from collections.abc import Mapping

from irc_bridge.masking import without_user_info

LONGEST_MESSAGE = 4000
"""In letters. Names and values in a message are those of a request, which may be megabytes."""


class BridgeError(Exception):
    status = 500
    iceberg_type = "InternalServerError"
    lance_code = 18
    headers: Mapping[str, str] = {}

    @property
    def message(self) -> str:
        """The text for a client or a log line. User names and passwords in URLs are masked."""
        text = str(self.args[0]) if self.args else type(self).__name__
        return without_user_info(text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}...")


class InvalidInput(BridgeError):
    status, iceberg_type, lance_code = 400, "BadRequestException", 13


class RequestTimeout(InvalidInput):
    status = 408


class BodyTooLarge(InvalidInput):
    status = 413


class QueryTooLong(InvalidInput):
    status = 414


class UnsupportedMediaType(InvalidInput):
    status = 415


class HeadTooLarge(InvalidInput):
    status = 431


class Unauthenticated(BridgeError):
    status, iceberg_type, lance_code = 401, "NotAuthorizedException", 16
    headers = {"www-authenticate": "Bearer"}  # noqa: RUF012


class PermissionDenied(BridgeError):
    status, iceberg_type, lance_code = 403, "ForbiddenException", 15


class NotFound(BridgeError):
    status, iceberg_type, lance_code = 404, "NotFoundException", 4


class WarehouseNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchWarehouseException", 1


class NamespaceNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchNamespaceException", 1


class TableNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchTableException", 4


class TableVersionNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchTableException", 11


class TagNotFound(NotFound):
    lance_code = 8


class ViewNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchViewException", 4


class PlanNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchPlanIdException", 10


class PlanTaskNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchPlanTaskException", 10


class RouteNotFound(NotFound):
    iceberg_type, lance_code = "NoSuchEndpointException", 0


class MethodNotAllowed(BridgeError):
    status, iceberg_type, lance_code = 405, "MethodNotAllowedException", 0

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method} is not allowed here: {', '.join(allowed)} are")
        self.headers = {"allow": ", ".join(allowed)}


class Unsupported(BridgeError):
    status, iceberg_type, lance_code = 406, "UnsupportedOperationException", 0


class Conflict(BridgeError):
    status, iceberg_type, lance_code = 409, "CommitFailedException", 14


class NamespaceAlreadyExists(Conflict):
    iceberg_type, lance_code = "AlreadyExistsException", 2


class NamespaceNotEmpty(Conflict):
    iceberg_type, lance_code = "NamespaceNotEmptyException", 3


class TableAlreadyExists(Conflict):
    iceberg_type, lance_code = "AlreadyExistsException", 5


class TagAlreadyExists(Conflict):
    iceberg_type, lance_code = "AlreadyExistsException", 9


class TableVersionAlreadyExists(Conflict):
    """12 is its code in the seeds. The published Lance protocol gave that number to another error,
    TableColumnNotFound, so on the Lance wire this one is sent as 14 with status 409: Lance clients treat that as
    the conflict that it is."""

    lance_code = 12


class ConcurrentModification(Conflict):
    pass


class CommitFailed(Conflict):
    pass


class Unprocessable(BridgeError):
    status, iceberg_type, lance_code = 422, "UnprocessableEntityException", 13


class Throttled(BridgeError):
    status, iceberg_type, lance_code = 429, "TooManyRequestsException", 21


class ServiceUnavailable(BridgeError):
    status, iceberg_type, lance_code = 503, "ServiceUnavailableException", 17


class BadGateway(ServiceUnavailable):
    status = 502


class GatewayTimeout(ServiceUnavailable):
    status = 504


class Internal(BridgeError):
    pass


class BrokenTable(Internal):
    pass


class CommitStateUnknown(Internal):
    iceberg_type = "CommitStateUnknownException"

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status
