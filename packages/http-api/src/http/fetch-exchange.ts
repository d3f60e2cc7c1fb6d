import type { Exchange, HostRequest } from "./exchange.ts";
import { mustCloseUnread } from "./close-unread.ts";
import { FetchReply } from "./fetch-reply.ts";
import { FetchRequest } from "./fetch-request.ts";
import { writeProblem } from "./write-answer.ts";

/** Is a request to `fetch`, and the `Response` that its answer becomes. */
export interface FetchExchange extends Exchange {
  readonly answered: Promise<Response>;
}

export function fetchExchange(request: Request, { caller, address = "" }: HostRequest = {}): FetchExchange {
  const isBodyRead = request.bodyUsed;
  const incoming = new FetchRequest(request);
  const response = new FetchReply(request.method);
  const { signal } = request;
  // A host that cancels the body itself does so in this turn. An error before it would look like a failure there.
  const gone = (): void => void setImmediate(() => response.destroy());
  signal.addEventListener("abort", gone, { once: true });
  response.once("close", () => signal.removeEventListener("abort", gone));
  if (signal.aborted) gone();
  return {
    request: incoming,
    response,
    address,
    isBodyRead,
    caller,
    // The host sent it, or reads the body itself.
    continueBody: () => {},
    refuse(problem, headers) {
      const isUnread = !incoming.readableEnded && mustCloseUnread(incoming, problem);
      writeProblem(response, problem, { ...headers, ...(isUnread ? { connection: "close" } : {}) });
      response.end();
    },
    answered: response.answered,
  };
}
