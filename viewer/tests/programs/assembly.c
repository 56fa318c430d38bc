/* A loop in assembly (x86-64) without an unwind table, with a saved register on the stack:
   main -> outer -> in_assembly. */
#include <stdio.h>

long in_assembly(long rounds);

__asm__(".text\n"
        ".globl in_assembly\n"
        ".type in_assembly, @function\n"
        "in_assembly:\n"
        "  push %rbx\n"
        "  push %rbp\n"
        "  mov %rdi, %rbx\n"
        "  mov %rdi, %rbp\n"
        "1: add $3, %rbp\n"
        "  dec %rbx\n"
        "  jnz 1b\n"
        "  mov %rbp, %rax\n"
        "  pop %rbp\n"
        "  pop %rbx\n"
        "  ret\n"
        ".size in_assembly, . - in_assembly\n");

__attribute__((noinline)) static long outer(long rounds)
{
    return in_assembly(rounds) + 1;
}

int main(void)
{
    volatile long sum = 0;
    puts("ready");
    fflush(stdout);
    for (;;)
        sum += outer(1000000000);
}
