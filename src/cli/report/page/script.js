'use strict';
// Shows the label of the mark under the pointer; arrow keys go from mark to mark of the focused plot.
const tip = document.getElementById('tip');
const marks = (svg) => [...svg.querySelectorAll('[role=img]')];

function show(mark) {
  const svg = mark.closest('svg');
  for (const old of document.querySelectorAll('[data-current]')) old.removeAttribute('data-current');
  mark.setAttribute('data-current', '');
  svg.current = mark;
  tip.textContent = mark.getAttribute('aria-label');
  tip.hidden = false;
  const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(box.right + 8, window.innerWidth - own.width - 8);
  const top = box.top - own.height - 6;
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = (top < 4 ? box.bottom + 6 : top) + 'px';
}

function hide() {
  tip.hidden = true;
  for (const old of document.querySelectorAll('[data-current]')) old.removeAttribute('data-current');
}

for (const svg of document.querySelectorAll('svg')) {
  svg.addEventListener('pointerover', (event) => event.target.matches('[role=img]') ? show(event.target) : hide());
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') hide();
    if (!step) return;
    event.preventDefault();
    const all = marks(svg);
    if (!all.length) return;
    const at = all.indexOf(svg.current);
    show(all[at < 0 ? 0 : (at + step + all.length) % all.length]);
  });
}
window.addEventListener('scroll', hide, { passive: true });
window.addEventListener('beforeprint', () => document.querySelectorAll('details').forEach((part) => part.open = true));
