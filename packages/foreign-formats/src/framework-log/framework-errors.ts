import { ThroughlineError } from "@throughline/core";

/**
 * Creates the framework's error with a Throughline error as its cause. Resolves to the Throughline error when the
 * framework cannot be loaded.
 */
export type MakeFrameworkError = (message: string, cause: ThroughlineError) => Promise<Error>;

/**
 * Returns a function that runs an adapter's work. It wraps each Throughline error in the framework's error class,
 * because callers of the framework check for that class.
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

/**
 * Returns a function that loads a class of a framework once. It resolves to null when the framework cannot be loaded.
 */
export function loadedOnce<Loaded>(load: () => Promise<Loaded>): () => Promise<Loaded | null> {
  let loaded: Promise<Loaded | null> | null = null;
  return () => (loaded ??= load().catch(() => null));
}
