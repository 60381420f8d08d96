/* A file system without locks, for a process that loads this first: what an NFS mount with `nolock` missing says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int refuse(int command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK;
}

int fcntl64(int descriptor, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (refuse(command)) {
        errno = ENOLCK;
        return -1;
    }
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl64");
    return real(descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (refuse(command)) {
        errno = ENOLCK;
        return -1;
    }
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
    return real(descriptor, command, argument);
}
