const mostCharacters = 14 * 1024 * 1024;

/** Returns the media type by the first bytes of an image in base64; null for anything but PNG, JPEG, GIF and WebP. */
export function imageTypeOf(base64: string): string | null {
  if (base64.length > mostCharacters || !/^[A-Za-z0-9+/]{16,}={0,2}$/.test(base64)) return null;
  const bytes = atob(base64.slice(0, 16));
  if (bytes.startsWith("\u0089PNG\r\n\u001a\n")) return "image/png";
  if (bytes.startsWith("\u00ff\u00d8\u00ff")) return "image/jpeg";
  if (bytes.startsWith("GIF87a") || bytes.startsWith("GIF89a")) return "image/gif";
  return bytes.startsWith("RIFF") && bytes.slice(8, 12) === "WEBP" ? "image/webp" : null;
}
