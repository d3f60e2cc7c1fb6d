import { createHash } from "node:crypto";
import { createProviderSimulator, type ProviderSimulator, type ProviderSimulatorOptions } from "@throughline/testing";
import type { GatewayOptions, ServerOptions, UpstreamOptions } from "@throughline/server";
import { serve, type Serving } from "./serving.ts";

/** A gateway in front of a simulated provider. */
export interface GatewayServing {
  readonly serving: Serving;
  /** The provider that is asked with a key of ours. */
  readonly simulator: ProviderSimulator;
  /** The provider that is asked with the caller's key. */
  readonly ownSimulator: ProviderSimulator;
  readonly url: string;
  /** A token that may ask every upstream, and read. */
  readonly token: string;
  /** Resolves with all calls of all sessions once there are so many. */
  calls(count: number): Promise<readonly FoundCall[]>;
  /** The body of a call as the log gives it back. */
  requestOf(call: FoundCall): Promise<Buffer>;
  close(): Promise<void>;
}

interface FoundCall {
  readonly session: string;
  readonly callId: string;
  readonly attempt: number;
  readonly outcome: string;
  readonly turnId: string;
}

/** Upstreams `anthropic`, `openai` and `ollama` with a key of ours, and `own-…` with the caller's. */
export async function serveGateway(
  options: ProviderSimulatorOptions = {},
  more: Partial<ServerOptions> = {},
  own: Partial<GatewayOptions> = {},
  ofUpstreams: Partial<UpstreamOptions> = {},
): Promise<GatewayServing> {
  const simulator = createProviderSimulator(options);
  const ownSimulator = createProviderSimulator(options);
  await Promise.all([simulator.start(), ownSimulator.start()]);
  const apis = ["anthropic", "openai", "ollama"] as const;
  const upstreams = Object.fromEntries(
    apis.flatMap((api) => [
      [api, { baseUrl: simulator.url, api, credentials: "server" as const, apiKey: "provider-key", ...ofUpstreams }],
      [`own-${api}`, { baseUrl: ownSimulator.url, api, credentials: "caller" as const, ...ofUpstreams }],
    ]),
  );
  const serving = await serve({ gateway: { upstreams, ...own }, ...more });
  const names = Object.keys(upstreams).map((name) => `gateway:${name}` as const);
  const token = await serving.tokenOf({ namespace: "", scopes: ["read", ...names] });
  const listed = async (): Promise<readonly FoundCall[]> => {
    const { body } = await serving.ask("GET", "/sessions?limit=1000", { token });
    const found: FoundCall[] = [];
    for (const { key } of body["items"] as readonly { readonly key: string }[]) {
      const calls = await serving.ask("GET", `/sessions/${key}/calls?tail=500`, { token });
      for (const call of calls.body["items"] as readonly FoundCall[]) found.push({ ...call, session: key });
    }
    return found;
  };
  return {
    serving,
    simulator,
    ownSimulator,
    url: serving.url,
    token,
    calls: async (count) => {
      for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 50) {
        const calls = await listed();
        if (calls.length >= count) return calls;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`Fewer than ${count} calls were stored: ${(await listed()).length}. ${serving.log()}`);
    },
    requestOf: async ({ session, callId }) => {
      const path = `/api/v1/sessions/${session}/calls/${callId}/request?payload=bytes`;
      const answer = await fetch(`${serving.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      if (answer.status !== 200) throw new Error(await answer.text());
      return Buffer.from(await answer.arrayBuffer());
    },
    close: async () => {
      await serving.close();
      await Promise.all([simulator.close(), ownSimulator.close()]);
    },
  };
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
