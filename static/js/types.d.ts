// deno-lint-ignore-file no-explicit-any
// What the scripts in this folder may use besides the browser's own: `deno check` reads it, browsers don't.
// A selector says which kind of element is found, and a name says which kind of event comes, where TypeScript
// knows only "an element, or none": both are therefore unchecked, and everything else is checked.
interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}
interface Document {
  getElementById(id: string): any;
  addEventListener(type: string, listener: (event: any) => void, options?: boolean | AddEventListenerOptions): void;
  readonly activeElement: any;
}
interface Element {
  closest(selectors: string): any;
  addEventListener(type: string, listener: (event: any) => void, options?: boolean | AddEventListenerOptions): void;
}
declare const htmx: {
  ajax(verb: string, path: string, context: { source: Element; target: Element; swap: string }): Promise<void>;
  registerExtension(name: string, hooks: Record<string, (element: Element, detail: any) => void | boolean>): void;
  trigger(element: Element, event: string): void;
};
