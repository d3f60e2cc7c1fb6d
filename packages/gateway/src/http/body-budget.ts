import { refused } from "@throughline/core/internal";

export interface BodyBudgetLimits {
  /** Limits the bytes of all request bodies that are held at the same time. */
  readonly inFlightBytes: number;
  readonly inFlightBytesPerToken: number;
}

export interface BodyShare {
  /** Reserves bytes before they are read. @throws {ThroughlineError} STORE_OVERLOADED */
  take(bytes: number): void;
  /** Counts bytes that are already in memory. It never throws, but later `take` calls may. */
  add(bytes: number): void;
  release(): void;
}

/** Limits the memory of request bodies. Each body is held until its request ends. */
export interface BodyBudget {
  /** @param weight how many copies of a body are held */
  share(tokenId: string, weight?: number): BodyShare;
}

const retryAfterMs = 1000;

export function createBodyBudget({ inFlightBytes, inFlightBytesPerToken }: BodyBudgetLimits): BodyBudget {
  const perToken = new Map<string, number>();
  let all = 0;
  return {
    share(tokenId, weight = 1) {
      let own = 0;
      const add = (bytes: number): void => {
        own += bytes;
        all += bytes;
        const left = (perToken.get(tokenId) ?? 0) + bytes;
        if (left === 0) perToken.delete(tokenId);
        else perToken.set(tokenId, left);
      };
      return {
        take(given) {
          const bytes = given * weight;
          const isOver = all + bytes > inFlightBytes || (perToken.get(tokenId) ?? 0) + bytes > inFlightBytesPerToken;
          // A body above the budget must still pass when no other body is held; otherwise it could never pass.
          if (isOver && (perToken.get(tokenId) ?? 0) - own > 0) throw overloaded(inFlightBytesPerToken);
          if (isOver && all - own > 0) throw overloaded(inFlightBytes);
          add(bytes);
        },
        add,
        release: () => add(-own),
      };
    },
  };
}

function overloaded(limit: number): Error {
  return refused(
    "STORE_OVERLOADED",
    "The server holds as many bodies of requests as it may. Send this one again later.",
    {
      limit,
      retryAfterMs,
    },
  );
}
