import { ThroughlineError } from "@throughline/core";

type ErrorClass = new (fields: { name: string; message: string; cause?: unknown }) => Error;

let loaded: Promise<ErrorClass | null> | null = null;

function sdkErrorClass(): Promise<ErrorClass | null> {
  loaded ??= import("ai").then(
    (sdk) => sdk.AISDKError as ErrorClass,
    () => null,
  );
  return loaded;
}

/** Runs work; an error of ours comes as the cause of the SDK's. */
export async function withSdkErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    const SdkError = await sdkErrorClass();
    if (SdkError === null) throw error;
    throw new SdkError({ name: "AI_ThroughlineError", message: `${error.message} (${error.code})`, cause: error });
  }
}
