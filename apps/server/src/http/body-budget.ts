import { refused } from "@throughline/core/internal";

export interface BodyBudgetLimits {
  /** The most bytes that the bodies of all requests that are being answered may have together. */
  readonly inFlightBytes: number;
  readonly inFlightBytesPerToken: number;
}

/** The part of one request. */
export interface BodyShare {
  /** Takes bytes before they are read. @throws {ThroughlineError} STORE_OVERLOADED */
  take(bytes: number): void;
  /** Counts bytes that are there already: others are refused for them. */
  add(bytes: number): void;
  /** Gives back what was taken. */
  release(): void;
}

/** Bounds the memory of bodies: each is held as long as its request lasts. */
export interface BodyBudget {
  /** @param weight how many times a body is held */
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
          // A body that is larger than the budget must pass where nothing else does.
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
