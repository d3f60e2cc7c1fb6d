import type { IncomingMessage } from "node:http";
import type { WireApi } from "./wire/index.ts";
import type { Upstream } from "./gateway-options.ts";

export type PathRule =
  | { readonly does: "record"; readonly api: WireApi }
  | { readonly does: "pass" }
  /**
   * Passes the request on with the caller's own key. A server key needs `sharedResources`, because the path reaches
   * resources of other users of the account.
   */
  | { readonly does: "share" }
  /** Passes the request on only for a token with the scope `gateway:manage`. */
  | { readonly does: "manage" }
  /** Passes the request on with the caller's own key only. */
  | { readonly does: "refuse" }
  /** Answers the client's connection test without the provider. */
  | { readonly does: "probe" };

type Row = readonly [methods: string, path: RegExp, rule: PathRule];

const record = (api: WireApi): PathRule => ({ does: "record", api });
const [pass, share, manage, refuse, probe] = (["pass", "share", "manage", "refuse", "probe"] as const).map((does) => ({
  does,
})) as [PathRule, PathRule, PathRule, PathRule, PathRule];

const common: readonly Row[] = [
  ["POST", /^\/v1\/messages$/, record("anthropic-messages")],
  ["POST", /^\/v1\/messages\/count_tokens$/, pass],
  ["GET", /^\/v1\/models(?:\/|$)/, pass],
];

const rows: Readonly<Record<Upstream["api"], readonly Row[]>> = {
  anthropic: [
    ["HEAD", /^\/?$/, probe],
    ["HEAD", /^\/api\/hello$/, probe],
    ...common,
    ["*", /^\/v1\/(?:messages\/batches|files|skills|sessions)(?:\/|$)/, share],
    ["*", /^\/v1\/organizations(?:\/|$)/, refuse],
  ],
  openai: [
    ["POST", /^\/v1\/chat\/completions$/, record("openai-completions")],
    ["POST", /^\/v1\/responses$/, record("openai-responses")],
    ["POST", /^\/v1\/responses\/compact$/, record("openai-responses")],
    ["POST", /^\/v1\/responses\/input_tokens$/, pass],
    ["POST", /^\/v1\/(?:embeddings|moderations)$/, pass],
    ["GET", /^\/v1\/models(?:\/|$)/, pass],
    ["*", /^\/v1\/(?:conversations|files|batches|responses|containers|vector_stores|uploads)(?:\/|$)/, share],
    ["*", /^\/v1\/(?:organization|organizations|admin|realtime)(?:\/|$)/, refuse],
  ],
  ollama: [
    ["POST", /^\/api\/(?:chat|generate)$/, record("ollama")],
    ["POST", /^\/v1\/chat\/completions$/, record("openai-completions")],
    ["POST", /^\/v1\/responses$/, record("openai-responses")],
    ...common,
    ["GET", /^\/(?:api\/(?:tags|ps|version))?$/, pass],
    ["HEAD", /^\/$/, pass],
    ["POST", /^\/(?:api\/(?:show|embed|embeddings)|v1\/embeddings)$/, pass],
    ["*", /^\/api\/(?:pull|push|create|copy|delete|blobs)(?:\/|$)/, manage],
  ],
};

/**
 * Returns the rule of a path that passed the safety checks. An unknown path is passed on with the caller's own key
 * only, because its effect on a shared account is unknown.
 */
export function ruleOf({ api, credentials }: Upstream, method: string, path: string): PathRule {
  const row = rows[api].find(([methods, form]) => (methods === "*" || methods === method) && form.test(path));
  return row?.[2] ?? (credentials === "caller" ? pass : refuse);
}

/** Returns whether an upstream might normalize the path to a different one, which would bypass the rules. */
export function isUnsafePath(path: string): boolean {
  const segments = path.split("/").slice(1);
  return (
    !path.startsWith("/") ||
    path.includes("\\") ||
    segments.some((segment, index) => {
      const plain = segment.toLowerCase().replaceAll("%2e", ".");
      // Some servers ignore the part of a segment after a semicolon, so only the part before it is compared.
      const [name = ""] = plain.split(/;|%3b/);
      if (name === "." || name === ".." || plain.includes("%2f") || plain.includes("%5c")) return true;
      return segment === "" && index < segments.length - 1;
    })
  );
}

export function pathOf(
  { name }: Upstream,
  { url = "" }: IncomingMessage,
): { readonly path: string; readonly target: string } {
  const target = url.slice(name.length + 1);
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  return { path: path === "" ? "/" : path, target: path === "" ? `/${target}` : target };
}
