// The platform that has opened this page in a frame or a window closes it again.
(window.opener || window.parent).postMessage({ subject: "org.imsglobal.lti.close" }, "*");
