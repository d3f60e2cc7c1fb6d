import { type ComponentType, h, type JSX } from "preact";
import { useLoad } from "../use-load.ts";
import { FailedState, LoadingRows } from "./states.tsx";

interface LazyProps<Props> {
  readonly load: () => Promise<{ readonly Page: ComponentType<Props> }>;
  readonly props: Props;
}

const loadedPages = new Map<string, ComponentType<never>>();

/** Loads the code of a page on its first use. */
export function LazyPage<Props extends object>(props: LazyProps<Props>): JSX.Element {
  const part = useLazy(props);
  return part.isReady ? (
    part.shown
  ) : (
    <main class="page" id="main">
      {part.shown}
    </main>
  );
}

/** Loads the code of a part of a page on its first use. */
export function LazyPart<Props extends object>(props: LazyProps<Props>): JSX.Element {
  return useLazy(props).shown;
}

function useLazy<Props extends object>({
  load,
  props,
}: LazyProps<Props>): {
  readonly isReady: boolean;
  readonly shown: JSX.Element;
} {
  const name = load.toString();
  const known = loadedPages.get(name) as ComponentType<Props> | undefined;
  const { loaded, reload } = useLoad(known === undefined ? name : null, async () => {
    const { Page } = await load();
    loadedPages.set(name, Page as ComponentType<never>);
    return Page;
  });
  const page = known ?? (loaded.state === "done" ? loaded.value : null);
  if (page !== null) return { isReady: true, shown: h(page, props) };
  const isFailed = loaded.state === "failed";
  return { isReady: false, shown: isFailed ? <FailedState error={loaded.error} reload={reload} /> : <LoadingRows /> };
}
