// In a library that contains parts of libstdc++: static objects of libstdc++ register destructors for exit,
// when threads of the library may still use these objects. Not registered, the destructors do not run. They
// would free nothing.
extern "C" [[gnu::used, gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
  return 0;
}
