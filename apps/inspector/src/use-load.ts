import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError, isAbort } from "./api.ts";

export type Loaded<Value> =
  | { readonly state: "loading" }
  | { readonly state: "done"; readonly value: Value }
  | { readonly state: "failed"; readonly error: ApiError };

export function errorOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, { code: "INTERNAL", message: String(error) });
}

/**
 * Loads a value and loads it again when `name` changes. With `keeps`, the list keeps the earlier value until the new one
 * arrives.
 */
export function useLoad<Value>(
  name: string | null,
  load: (signal: AbortSignal) => Promise<Value>,
  { keeps = false }: { readonly keeps?: boolean } = {},
): { readonly loaded: Loaded<Value>; readonly reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ state: "loading" });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (name === null) return undefined;
    const stop = new AbortController();
    if (!keeps) setLoaded({ state: "loading" });
    load(stop.signal).then(
      (value) => {
        if (!stop.signal.aborted) setLoaded({ state: "done", value });
      },
      (error: unknown) => {
        if (!stop.signal.aborted && !isAbort(error)) setLoaded({ state: "failed", error: errorOf(error) });
      },
    );
    return () => stop.abort();
  }, [name, turn]);
  const reload = useCallback(() => setTurn((at) => at + 1), []);
  return { loaded, reload };
}
