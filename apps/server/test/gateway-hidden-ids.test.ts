import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

let gateway: GatewayServing;
beforeEach(async () => {
  gateway = await serveGateway({ fallback: () => "Well." });
});
afterEach(() => gateway.close());

const about = '"model":"gpt-5","input":"Q"';

/** Bodies that name what another token was answered, where one parser sees it and another does not. */
const hidden: readonly (readonly [string, (id: string) => string | Buffer])[] = [
  ["in UTF-16", (id) => Buffer.from(`{${about},"previous_response_id":"${id}"}`, "utf16le")],
  ["with an escape in its name", (id) => `{${about},"previous_respons\\u0065_id":"${id}"}`],
  ["in capitals", (id) => `{${about},"PREVIOUS_RESPONSE_ID":"${id}"}`],
  ["twice", (id) => `{"previous_response_id":null,${about},"previous_response_id":"${id}"}`],
  ["behind many levels", (id) => `{${about},"x":${"[".repeat(300)}${"]".repeat(300)},"previous_response_id":"${id}"}`],
  ["behind many values", (id) => `{${about},"x":[${"1,".repeat(300_000)}1],"previous_response_id":"${id}"}`],
  ["in what is no JSON", (id) => `{${about},"previous_response_id":"${id}"`],
];

describe("an id of another token in a body that hides it", () => {
  it.each(hidden)("%s does not reach the provider with a key of the server's", async (_how, bodyOf) => {
    const ask = (token: string, body: string | Buffer, mode = "record"): Promise<Response> =>
      fetch(`${gateway.url}/openai/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "throughline-mode": mode },
        body,
      });
    const other = await gateway.serving.tokenOf({ namespace: "", scopes: ["read", "write", "gateway:openai"] });
    const first = (await (await ask(gateway.token, `{${about}}`)).json()) as { readonly id: string };
    expect(first.id).not.toBe("");
    for (const mode of ["record", "guard"]) {
      const { status } = await ask(other, bodyOf(first.id), mode);
      expect([mode, status]).toEqual([mode, expect.toSatisfy((code: number) => code === 400 || code === 404)]);
    }
    expect(gateway.simulator.requests).toHaveLength(1);
    // The history is the server's there: what names another one is left out of what is sent, or refused.
    await ask(other, bodyOf(first.id), "stateful");
    for (const { bytes } of gateway.simulator.requests.slice(1))
      expect(
        Buffer.from(bytes ?? [])
          .toString("latin1")
          .replaceAll("\0", ""),
      ).not.toContain(first.id);
  });
});
