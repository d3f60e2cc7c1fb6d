import Anthropic from "@anthropic-ai/sdk";
import { ThroughlineError } from "@throughline/core";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { modelFailure } from "../src/model-failure.ts";

const streamed = (type: string): Error =>
  new Anthropic.APIError(undefined, { type: "error", error: { type, message: "No." } }, undefined, undefined);

describe("the failure of a model call", () => {
  it.each([
    ["a rate limit in the middle of a stream", streamed("rate_limit_error"), true],
    ["overload in the middle of a stream", streamed("overloaded_error"), true],
    ["a fault of the provider in the middle of a stream", streamed("api_error"), true],
    ["a request that is refused in the middle of a stream", streamed("invalid_request_error"), false],
    ["a key that is refused in the middle of a stream", streamed("authentication_error"), false],
    ["a timeout of Anthropic's SDK", new Anthropic.APIConnectionTimeoutError(), true],
    ["a connection of OpenAI's SDK", new OpenAI.APIConnectionError({ message: "Connection error." }), true],
    ["a timeout of a signal", new DOMException("The operation was aborted due to timeout", "TimeoutError"), true],
    ["a gateway's 500 around a 401", { status: 500, message: '{"error":{"code":401,"message":"invalid key"}}' }, false],
    ["a gateway's 401 around nothing", { statusCode: 401 }, false],
    ["a text", "something", true],
    ["nothing", undefined, true],
  ])("that was %s", (_case, error, retryable) => {
    const failure = modelFailure(error);
    expect(failure).toMatchObject({ code: "MODEL_FAILED", retryable });
    expect(failure.cause).toBe(error);
  });

  it("names the connection that failed, which the SDKs keep in a cause", () => {
    const refused = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" });
    const error = new OpenAI.APIConnectionError({
      message: "Connection error.",
      cause: new TypeError("fetch failed", { cause: refused }),
    });
    expect(modelFailure(error).message).toBe("The provider could not be reached: Connection error. (ECONNREFUSED)");
  });

  it("quotes the beginning of a long text, and anything else that is thrown", () => {
    expect(modelFailure(new Error("x".repeat(1_000_000))).message).toMatch(
      /^The model call failed: x{2000}… \(1000000 characters\)$/,
    );
    const odd = {
      toString: (): string => {
        throw new Error("no");
      },
    };
    expect(modelFailure(odd).message).toBe("The model call failed: something was thrown that has no text");
    const cyclic = new Error("again");
    cyclic.cause = cyclic;
    expect(modelFailure(cyclic).message).toBe("The model call failed: again");
  });

  it("leaves an error of ours as it is", () => {
    const error = new ThroughlineError("ABORTED", "Stopped.");
    expect(modelFailure(error)).toBe(error);
  });
});
