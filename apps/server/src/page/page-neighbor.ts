import type { IncomingMessage, ServerResponse } from "node:http";
import { refused } from "@throughline/core/internal";
import type { Neighbor } from "@throughline/http-api/internal";
import { pageName } from "./file-list.ts";
import type { PageFile, PageFiles } from "./page-files.ts";

/** Answers for the page: it needs no token, because its files hold no data. */
export interface Page {
  /** Returns null for a request that is not for the page. */
  neighborOf(request: IncomingMessage, response: ServerResponse): Neighbor | null;
}

const root = "/inspect";
/** Lists the addresses that the page itself draws. The names are exact, and no part of an address is decoded. */
const pagePath = /^(?:|search|usage|help|s\/[A-Za-z0-9_~:-][A-Za-z0-9._~:-]{0,4095})$/;

/** Ends the reach of a text that would become markup: no script, style, image or connection but the page's own. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types throughline-worker",
].join("; ");

const everyFile: Readonly<Record<string, string>> = {
  "content-security-policy": policy,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
  vary: "accept-encoding",
};

/** A name with the digest of its content, as in `index-DZNAj53m.js`, never has another content. */
function isHashed(name: string): boolean {
  const stem = name.slice(0, name.lastIndexOf("."));
  return stem.at(-9) === "-" && /^[A-Za-z0-9_-]{8}$/.test(stem.slice(-8));
}

export function createPage(files: PageFiles): Page {
  return {
    neighborOf(request, response) {
      const [path = ""] = (request.url ?? "").split("?", 1);
      if (path !== root && !path.startsWith(`${root}/`)) return null;
      const rest = path.slice(root.length + 1);
      return {
        route: root,
        isNavigable: pagePath.test(rest),
        answer: async () => {
          const { method } = request;
          if (method !== "GET" && method !== "HEAD")
            throw refused("METHOD_REFUSED", "The path does not take this method.", { allow: ["GET", "HEAD"] });
          // The address is relative, so that a proxy may serve the page below a path of its own.
          if (path === root) return void response.writeHead(308, { ...everyFile, location: "inspect/" }).end();
          const file = await files.read(pagePath.test(rest) ? pageName : rest);
          if (file === null) throw refused("ROUTE_NOT_FOUND", "The server has nothing at this path.");
          writeFile(request, response, file);
        },
      };
    },
  };
}

function writeFile(
  { headers: { "accept-encoding": accepted, "if-none-match": known }, method }: IncomingMessage,
  response: ServerResponse,
  { name, type, bytes, gzip, etag }: PageFile,
): void {
  const caching = name === pageName ? "no-store" : isHashed(name) ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = { ...everyFile, "cache-control": caching, ...(name === pageName ? {} : { etag }) };
  if (name !== pageName && known === etag) return void response.writeHead(304, headers).end();
  const packed = gzip !== null && takesGzip(accepted) ? gzip : null;
  const body = packed ?? bytes;
  response.writeHead(200, {
    ...headers,
    "content-type": type,
    "content-length": body.length,
    ...(packed === null ? {} : { "content-encoding": "gzip" }),
  });
  response.end(method === "HEAD" ? undefined : body);
}

function takesGzip(accepted: string | string[] | undefined): boolean {
  const names = String(accepted ?? "")
    .slice(0, 1000)
    .toLowerCase()
    .split(",");
  return names.some((each) => {
    const [name = "", weight = ""] = each.split(";", 2).map((part) => part.trim());
    return name === "gzip" && !/^q=0(?:\.0{1,3})?$/.test(weight);
  });
}
