/** Returns for example `1 record` or `2 records`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns for example `1,234`. */
export function grouped(count: number): string {
  return count.toLocaleString("en");
}

/** Returns for example `950 B`, `1.2 kB`, `3.4 MB` or `5.6 GB`. */
export function sizeText(sizeBytes: number): string {
  if (sizeBytes < 1000) return `${sizeBytes} B`;
  if (sizeBytes >= 1_000_000_000) return `${(sizeBytes / 1_000_000_000).toFixed(1)} GB`;
  return sizeBytes < 1_000_000 ? `${(sizeBytes / 1000).toFixed(1)} kB` : `${(sizeBytes / 1_000_000).toFixed(1)} MB`;
}

/** Returns for example `$1,234.50`, or `$0.0042` for less than a cent. */
export function usdText(usd: number): string {
  const digits = usd > 0 && usd < 0.01 ? 4 : 2;
  return `$${usd.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
