"use strict";
document.addEventListener("DOMContentLoaded", () => {
  // The text of these buttons is their name: a label that differs from it confuses speech control.
  for (const button of document.querySelectorAll(".version-switcher__button")) {
    button.removeAttribute("aria-label");
    // Until the list of versions has been loaded, which needs the network, the button shows the version of the page.
    if (button.textContent.trim() === "Choose version") button.firstChild.textContent = DOCUMENTATION_OPTIONS.VERSION;
  }
  // The arrows that open a part of the sidebar have no text.
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const link = summary.closest("li")?.querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link ? link.textContent.trim() : "this part"}`);
  }
  // Wide figures scroll on narrow screens, also by keyboard.
  for (const image of document.querySelectorAll('.bd-article p > img[src$=".svg"]')) image.parentElement.tabIndex = 0;
  // The text of links on thumbnails is hidden.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
});
