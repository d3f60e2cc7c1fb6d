import { ThroughlineError } from "@throughline/core";

/** Makes the framework's own error, with ours as its cause; ours where the framework cannot be loaded. */
export type MakeFrameworkError = (message: string, cause: ThroughlineError) => Promise<Error>;

/**
 * What an adapter runs its work through: an error of ours comes as the cause of the framework's own, whose callers look for its class.
 * @example const withSdkErrors = frameworkErrors((message, cause) => userError(message, cause));
 */
export function frameworkErrors(make: MakeFrameworkError): <Result>(work: () => Promise<Result>) => Promise<Result> {
  return async (work) => {
    try {
      return await work();
    } catch (error) {
      if (!ThroughlineError.isInstance(error)) throw error;
      throw await make(`${error.message} (${error.code})`, error);
    }
  };
}

/** Loads a class of a framework once; null where the framework cannot be loaded. */
export function loadedOnce<Loaded>(load: () => Promise<Loaded>): () => Promise<Loaded | null> {
  let loaded: Promise<Loaded | null> | null = null;
  return () => (loaded ??= load().catch(() => null));
}
