import type { IncomingMessage } from "node:http";
import type { WireApi } from "@throughline/wire/internal";
import type { Upstream } from "./gateway-options.ts";

/** What is done with a path of an upstream. */
export type PathRule =
  /** Passed on, and stored as a call. */
  | { readonly does: "record"; readonly api: WireApi }
  /** Passed on. */
  | { readonly does: "pass" }
  /** Passed on with the caller's own key, else where the configuration says so: it reaches what others of the account made. */
  | { readonly does: "share" }
  /** Passed on to a token with the scope `gateway:manage`. */
  | { readonly does: "manage" }
  /** Passed on with the caller's own key only. */
  | { readonly does: "refuse" }
  /** Answered here. */
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

/** What is done with a path that passes the checks. One that is not known reaches the provider with the caller's own key only. */
export function ruleOf({ api, credentials }: Upstream, method: string, path: string): PathRule {
  const row = rows[api].find(([methods, form]) => (methods === "*" || methods === method) && form.test(path));
  return row?.[2] ?? (credentials === "caller" ? pass : refuse);
}

/** Whether a path has a segment that an upstream may read as another path. */
export function isUnsafePath(path: string): boolean {
  const segments = path.split("/").slice(1);
  return (
    !path.startsWith("/") ||
    path.includes("\\") ||
    segments.some((segment, index) => {
      const plain = segment.toLowerCase().replaceAll("%2e", ".");
      // Some servers take what stands behind a semicolon for no part of the segment.
      const [name = ""] = plain.split(/;|%3b/);
      if (name === "." || name === ".." || plain.includes("%2f") || plain.includes("%5c")) return true;
      return segment === "" && index < segments.length - 1;
    })
  );
}

/** The path below the upstream's name without the query, and with it. */
export function pathOf(
  { name }: Upstream,
  { url = "" }: IncomingMessage,
): { readonly path: string; readonly target: string } {
  const target = url.slice(name.length + 1);
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  return { path: path === "" ? "/" : path, target: path === "" ? `/${target}` : target };
}
