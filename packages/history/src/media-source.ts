import type { ReplaySource } from "./replay-turn.ts";

export interface MediaRules {
  readonly types: ReadonlySet<string>;
  readonly links: boolean;
  /** Limits the base64 characters of one image or file; null means no limit. */
  readonly maxLength: number | null;
}

export interface MediaRefusal {
  /** Gives the reason in one or two words, which follow the name of the block. */
  readonly because: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Normalizes the source of an image or a file: padded base64 on one line, with the type that its first bytes show. A
 * provider rejects an image with a wrong type, and with it every later request.
 */
export function readMedia(
  source: Fields,
  mediaType: unknown,
  data: unknown,
  { types, links, maxLength }: MediaRules,
): ReplaySource | MediaRefusal {
  const { type, url } = source;
  if (type === "url") {
    return links && typeof url === "string" && /^https?:\/\//.test(url) && url.isWellFormed()
      ? { type: "url", url }
      : { because: null };
  }
  if (typeof data !== "string") return { because: null };
  const { stated, bytes } = takeDataUrl(data);
  const plain = plainBase64(bytes);
  if (plain === null) return { because: null };
  const found = imageTypeOf(plain) ?? plainMediaType(mediaType) ?? stated;
  if (found === null || !types.has(found)) return { because: null };
  if (maxLength !== null && plain.length > maxLength)
    return { because: `${(plain.length / 2 ** 20).toFixed(1)} MB of at most ${(maxLength / 2 ** 20).toFixed(1)}` };
  return { type: "base64", media_type: found, data: plain };
}

function takeDataUrl(data: string): { readonly stated: string | null; readonly bytes: string } {
  if (!data.startsWith("data:")) return { stated: null, bytes: data };
  const comma = data.indexOf(",");
  return { stated: plainMediaType(data.slice("data:".length, Math.max(0, comma))), bytes: data.slice(comma + 1) };
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns padded base64 on one line in the standard alphabet, or null for invalid base64. */
function plainBase64(data: string): string | null {
  if (data.length % 4 === 0 && base64.test(data)) return data;
  const bare = withoutPadding(data.replace(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/"));
  if (bare === "" || bare.length % 4 === 1 || !base64.test(bare)) return null;
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, "=");
}

function withoutPadding(data: string): string {
  let end = data.length;
  while (data[end - 1] === "=") end -= 1;
  return data.slice(0, end);
}

/** The rules list registered types in lower case without parameters, so the stated type is converted to that form. */
export function plainMediaType(mediaType: unknown): string | null {
  if (typeof mediaType !== "string") return null;
  const type = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type === "image/jpg" || type === "image/pjpeg") return "image/jpeg";
  return type === "" ? null : type;
}

/** Returns the type of an image by its first bytes, or null if it is none of the four known types. */
export function imageTypeOf(data: string): string | null {
  if (data.startsWith("iVBORw0KGgo")) return "image/png";
  if (data.startsWith("/9j/")) return "image/jpeg";
  if (data.startsWith("R0lGOD")) return "image/gif";
  // A WebP file starts with RIFF, a length, and WEBP. Three bytes of WEBP form a base64 group on their own.
  return data.startsWith("UklGR") && data.startsWith("RUJQ", 12) ? "image/webp" : null;
}
