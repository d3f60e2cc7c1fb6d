import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isAbort } from "./api.ts";
import { InTurn } from "./in-turn.ts";

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

/** A view that follows a session asks at most this often. */
const followMs = 1000;

/**
 * Loads what grows with a session, and again when `version` changes. The earlier value stays until the new one arrives.
 * A load that has begun ends first. Otherwise the records of a fast turn would end each load before its answer.
 */
export function useFollowed<Value>(
  version: number | string | null,
  load: (signal: AbortSignal) => Promise<Value>,
): { readonly loaded: Loaded<Value>; readonly reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ state: "loading" });
  const turn = useRef<InTurn | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const work = async (): Promise<void> => {
      try {
        const value = await load(signal);
        if (!signal.aborted) setLoaded({ state: "done", value });
      } catch (error) {
        if (!signal.aborted && !isAbort(error)) setLoaded({ state: "failed", error: errorOf(error) });
      }
    };
    turn.current = new InTurn(work, signal, followMs);
    return () => stop.abort();
  }, []);
  const reload = useCallback(() => void turn.current?.ask(), []);
  useEffect(() => {
    if (version !== null) reload();
  }, [version]);
  return { loaded, reload };
}
