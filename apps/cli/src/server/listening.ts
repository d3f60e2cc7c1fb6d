import { ThroughlineError } from "@throughline/core";

/** True if only programs of this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

const refusals: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "another program uses it"],
  ["EACCES", "this user may not use it"],
  ["EADDRNOTAVAIL", "this machine does not have it"],
  ["ENOTFOUND", "no address has this name"],
  ["EAI_AGAIN", "no address has this name"],
]);

export function listenFailure(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const why = syscall === undefined ? undefined : refusals.get(code);
  if (why === undefined) return error;
  const message = `The server cannot listen on ${host} port ${port}: ${why}.`;
  return new ThroughlineError("ADDRESS_UNAVAILABLE", message, {
    details: { host, port, systemCode: code },
    cause: error,
  });
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });
}
