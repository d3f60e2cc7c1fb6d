import type { JSX, TargetedEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { HelpDialog } from "./help-dialog.tsx";
import { HomePage } from "./home/home-page.tsx";
import { useKeys } from "./keys.ts";
import { hrefWith, navigate, pageHref, type Route, useRoute } from "./router.ts";
import { SearchPage } from "./search/search-page.tsx";
import { useTheme } from "./theme.ts";
import { TokenField } from "./token-field.tsx";
import { tokenOf } from "./token.ts";
import { Icon } from "./ui/icons.tsx";
import { LazyPage } from "./ui/lazy-page.tsx";
import { EmptyState } from "./ui/states.tsx";

export function App(): JSX.Element {
  const route = useRoute();
  const [isHelp, setHelp] = useState(route.page === "help");
  const field = useRef<HTMLInputElement>(null);
  const find = (): void => {
    field.current?.focus();
    field.current?.select();
  };
  useKeys({ "?": () => setHelp(true), s: find, "Ctrl+k": find, ...(route.page === "session" ? {} : { "/": find }) });
  useEffect(() => setHelp(route.page === "help"), [route.page]);
  const hasToken = tokenOf() !== null;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Header route={route} field={field} hasToken={hasToken} onHelp={() => setHelp(true)} />
      {hasToken ? <Page route={route} /> : <TokenField />}
      {isHelp ? <HelpDialog onClose={() => closeHelp(route, setHelp)} /> : null}
    </>
  );
}

function closeHelp({ page }: Route, setHelp: (value: boolean) => void): void {
  setHelp(false);
  if (page === "help") navigate(pageHref(""), { replace: true });
}

function Page({ route }: { readonly route: Route }): JSX.Element {
  switch (route.page) {
    case "home":
    case "help":
      return <HomePage query={route.query} />;
    case "search":
      return <SearchPage query={route.query} />;
    case "usage":
      return <LazyPage load={() => import("./usage/usage-page.tsx")} props={{ query: route.query }} />;
    case "session":
      return <LazyPage load={() => import("./session/session-page.tsx")} props={{ route }} />;
    default:
      return (
        <main class="page" id="main">
          <EmptyState title="No such page">
            <p>
              The address names no page. <a href={pageHref("")}>All sessions</a>
            </p>
          </EmptyState>
        </main>
      );
  }
}

interface HeaderProps {
  readonly route: Route;
  readonly field: { current: HTMLInputElement | null };
  readonly hasToken: boolean;
  readonly onHelp: () => void;
}

function Header({ route, field, hasToken, onHelp }: HeaderProps): JSX.Element {
  const [theme, nextTheme] = useTheme();
  const words = route.page === "home" || route.page === "search" ? (route.query.get("q") ?? "") : "";
  return (
    <header class="top">
      <a class="brand" href={pageHref("")} aria-label="Throughline, all sessions">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M8 11h16M8 16h11M8 21h14" />
        </svg>
        <span>Throughline</span>
      </a>
      {hasToken ? <FindField route={route} words={words} field={field} /> : <span class="find-space" />}
      <nav class="top-links" aria-label="Page">
        <a href={pageHref("usage")} aria-current={route.page === "usage" ? "page" : undefined}>
          Usage
        </a>
        <button type="button" class="icon-button" aria-label="Keys and help" title="Keys and help (?)" onClick={onHelp}>
          <span aria-hidden="true">?</span>
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label={`Colors: ${theme}. Switch`}
          title={`Colors: ${theme}`}
          onClick={nextTheme}
        >
          <Icon name={theme === "light" ? "sun" : theme === "dark" ? "moon" : "auto"} />
        </button>
      </nav>
    </header>
  );
}

type FindProps = Pick<HeaderProps, "route" | "field"> & { readonly words: string };

/** Shows the field that filters the list at each key. On other pages Enter opens the search. */
function FindField({ route, words, field }: FindProps): JSX.Element {
  const isLive = route.page === "home" || route.page === "search";
  const submit = (event: Event): void => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    if (text !== "") navigate(pageHref("search", { q: text }));
  };
  const input = (event: TargetedEvent<HTMLInputElement>): void => {
    if (isLive) navigate(hrefWith({ q: event.currentTarget.value, limit: null }), { replace: true });
  };
  return (
    <form class="find" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        value={words}
        onInput={input}
        aria-label="Find a session, or words in it"
        placeholder="Find a session, or words in it"
        autocomplete="off"
        spellcheck={false}
      />
      <kbd aria-hidden="true">s</kbd>
    </form>
  );
}
