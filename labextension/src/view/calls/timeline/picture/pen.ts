/** Gets the pen of a canvas. */

/**
 * The pen of a canvas, with CSS pixels as its units, at the resolution of the screen; null: the
 * canvas cannot be drawn on, for example because it is hidden.
 */
export function penOf(
  canvas: HTMLCanvasElement,
  { width, height }: { readonly width: number; readonly height: number }
): CanvasRenderingContext2D | null {
  const pen = width > 0 ? canvas.getContext('2d') : null;
  if (!pen) {
    return null;
  }
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}
