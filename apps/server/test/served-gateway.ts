import process from "node:process";
import { createServer, type GatewayMode } from "@throughline/server";
import type { SessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";

// A gateway in a process of its own, which a test kills. Its store takes its time for the records of a call.
const [, , folder = "", mode = "record", baseUrl = "", known = "", appendMs = "0"] = process.argv;
const server = await createServer({
  openStore: () => {
    const store = createSqliteStore({ path: `${folder}/sessions.db` });
    return new Proxy(store, {
      get(target, name): unknown {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        const call = (...given: readonly unknown[]): unknown => Reflect.apply(member, target, given) as unknown;
        if (name !== "append") return call;
        return async (...given: readonly unknown[]) => {
          const isCall = (given[0] as SessionRef).namespace === "";
          if (isCall) await new Promise((resolve) => setTimeout(resolve, Number(appendMs)));
          return call(...given);
        };
      },
    });
  },
  port: 0,
  gateway: {
    upstreams: {
      anthropic: { api: "anthropic", baseUrl, credentials: "server", apiKey: "k", mode: mode as GatewayMode },
    },
    spoolFolder: `${folder}/spool`,
  },
});
const rights = { namespace: "", agents: "*", scopes: ["read", "gateway:anthropic"], expiresAtMs: null } as const;
const token = known === "" ? (await server.tokens.create(rights, null)).text : known;
process.send?.({ url: server.url, token });
