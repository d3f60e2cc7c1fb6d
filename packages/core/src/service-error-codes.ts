/** A server and its requests throw these errors, which extend the table of `error-codes.ts`. */
export const serviceErrorCodes = {
  ADDRESS_UNAVAILABLE: {
    summary: "The server cannot listen on the address.",
    retryable: false,
    remedy: "Stop the program that has the port, or name another address: --port 0 takes a free port.",
  },
  FORBIDDEN: {
    summary: "The token does not allow this request.",
    retryable: false,
    remedy: "Use a token with the scope that the details name.",
  },
  HOST_REFUSED: {
    summary: "The request names a host that the server does not serve.",
    retryable: false,
    remedy: "Use the server's own address, or add the name to the server's `allowedHosts`.",
  },
  MEDIA_TYPE_UNSUPPORTED: {
    summary: "The body of a request has another media type, or is encoded.",
    retryable: false,
    remedy: "Send JSON as application/json without a content-encoding.",
  },
  METHOD_REFUSED: {
    summary: "The path exists, but not with this method.",
    retryable: false,
    remedy: "Use one of the methods in the allow header.",
  },
  ORIGIN_REFUSED: {
    summary: "A page of another origin sent the request.",
    retryable: false,
    remedy: "Call the server from its own page or from a program, or add the origin to the server's `allowedOrigins`.",
  },
  PRECONDITION_REQUIRED: {
    summary: "A whole entry is replaced only over a known revision.",
    retryable: false,
    remedy: "Send If-Match with the revision that the entry was read with, or If-None-Match: * for a new session.",
  },
  RATE_LIMITED: {
    summary: "The client sent more requests, or opened more streams, than the server takes.",
    retryable: true,
    remedy: "Wait as long as the retry-after header says.",
  },
  REQUEST_TIMEOUT: {
    summary: "The request did not arrive in time.",
    retryable: true,
    remedy: "Send the whole request within a minute.",
  },
  REQUEST_TOO_LARGE: {
    summary: "The request is larger than the server takes.",
    retryable: false,
    remedy: "Send less at once; GET /api/v1/store states the limits.",
  },
  ROUTE_NOT_FOUND: {
    summary: "The server has nothing at this path.",
    retryable: false,
    remedy: "Check the path and its version.",
  },
  SERVER_DRAINING: {
    summary: "The server is stopping and takes no new requests.",
    retryable: true,
    remedy: "Repeat the request at another node, or at this one in a moment.",
  },
  SERVER_RUNNING: {
    summary: "Another server serves the same home.",
    retryable: false,
    remedy: "Use that server, stop it first, or name another home with --home.",
  },
  UNAUTHENTICATED: {
    summary: "The request has no token, or one that is not valid.",
    retryable: false,
    remedy: "Send a valid token in the header `authorization: Bearer`.",
  },
  UPGRADE_REFUSED: {
    summary: "The request asks for another protocol, such as WebSocket.",
    retryable: false,
    remedy: "Send the request as plain HTTP; answers are streamed as server-sent events.",
  },
  UPSTREAM_UNREACHABLE: {
    summary: "The provider behind the gateway gave no answer.",
    retryable: true,
    remedy: "Check the provider's address in `gateway.upstreams`, and repeat the request.",
  },
} as const;
