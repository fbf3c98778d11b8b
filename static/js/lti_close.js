// The platform that has opened this page in a frame or a window closes it again.
(globalThis.opener || globalThis.parent).postMessage({ subject: "org.imsglobal.lti.close" }, "*");
