"use strict";
document.addEventListener("DOMContentLoaded", () => {
  // The text of these buttons is their name: a label that differs from it confuses speech control.
  for (const button of document.querySelectorAll(".version-switcher__button")) button.removeAttribute("aria-label");
  // The text of links on thumbnails is hidden.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
});
