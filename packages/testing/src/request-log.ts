import type { ReceivedRequest, Refusal, RequestOutcome } from "./simulator-options.ts";

/** A request is mutable until its outcome is known. */
export type OpenRequest = { -readonly [Field in keyof ReceivedRequest]: ReceivedRequest[Field] };

export interface RequestLog {
  readonly requests: readonly ReceivedRequest[];
  readonly refusals: readonly Refusal[];
  add(request: Omit<ReceivedRequest, "number" | "outcome" | "status" | "promptTokens">): OpenRequest;
  end(request: OpenRequest, outcome: RequestOutcome, status: number): void;
  refuse(request: OpenRequest, refusal: Pick<Refusal, "kind" | "status" | "message">): void;
}

export function createRequestLog(): RequestLog {
  const requests: OpenRequest[] = [];
  const refusals: Refusal[] = [];
  const end = (request: OpenRequest, outcome: RequestOutcome, status: number): void => {
    request.outcome = outcome;
    request.status = status;
  };
  return {
    requests,
    refusals,
    add(received): OpenRequest {
      const request: OpenRequest = {
        ...received,
        number: requests.length + 1,
        promptTokens: 0,
        outcome: "pending",
        status: 0,
      };
      requests.push(request);
      return request;
    },
    end,
    refuse(request, refusal): void {
      refusals.push({ request: request.number, api: request.api, ...refusal });
      end(request, "refused", refusal.status);
    },
  };
}
