/** The file of a thread in the form in which this package runs: its source, or what was built of it. */
export function threadUrl(source: URL): URL {
  return import.meta.url.endsWith(".ts") ? source : new URL(source.href.replace(/\.ts$/, ".js"));
}
