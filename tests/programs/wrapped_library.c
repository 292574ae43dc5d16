/* The other library of dlsym_next_twice: the next `foo` after the wrapper's. */
int foo(void);
int foo(void) { return 10; }
