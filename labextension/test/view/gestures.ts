/** User input on a canvas, and a fake drawing context that records what is drawn. */

/**
 * A drawing context that adds the texts and the crosses of failed calls to `drawn`, and the color of
 * each rectangle to `fills`.
 */
export function fakePen(drawn: string[], fills: string[] = []): unknown {
  let colour = '';
  const methods: Record<string, unknown> = {
    fillRect: () => fills.push(colour),
    fillText: (text: string) => drawn.push(text),
    measureText: (text: string) => ({ width: 6 * text.length }),
    closePath: () => drawn.push('closePath'),
    strokeRect: () => drawn.push('strokeRect'),
    moveTo: (_: number, y: number) => y < 40 && y > 22 && drawn.push('moveTo')
  };
  return new Proxy(methods, {
    get: (target, name: string) => target[name] ?? (() => undefined),
    set: (_, name, value) => (name === 'fillStyle' && (colour = value), true)
  });
}

export function pointer(
  canvas: HTMLElement,
  type: string,
  x: number,
  y: number,
  shiftKey = false
): void {
  const event = new MouseEvent(type, { button: 0, clientX: x, clientY: y, shiftKey });
  Object.defineProperties(event, { offsetX: { value: x }, offsetY: { value: y } });
  canvas.dispatchEvent(event);
}

export function click(canvas: HTMLElement, x: number, y: number): void {
  pointer(canvas, 'pointerdown', x, y);
  pointer(canvas, 'pointerup', x, y);
}

export function drag(canvas: HTMLElement, from: number, to: number, shift: boolean): void {
  pointer(canvas, 'pointerdown', from, 36, shift);
  pointer(canvas, 'pointermove', to, 36, shift);
  pointer(canvas, 'pointerup', to, 36, shift);
}

/** Presses a key; true: the browser's default action is not prevented. */
export function key(canvas: HTMLElement, key: string, init: KeyboardEventInit = {}): boolean {
  return canvas.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true, ...init }));
}

/** Turns the wheel; true: the page scrolls. */
export function wheel(canvas: HTMLElement, init: WheelEventInit): boolean {
  return canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: 9, cancelable: true, ...init }));
}
