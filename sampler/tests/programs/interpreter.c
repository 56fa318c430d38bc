/*
 * An interpreter in generated code, as a VM's is, and a compiled method beside it.
 *
 * At 0x200000000 lie two copies of one routine, which does nothing but multiply; what
 * differs is what the registers and the frame hold meanwhile:
 *
 *   interpreter  r13 = address of a bytecode, or nothing of use at a method's entry;
 *                [rbp - 24] = address of the method's object
 *   compiled     the same values, which mean nothing there
 *
 * The data lie at 0x200010000: the bytecodes of one method, and its object 4096 bytes on.
 * Of each round one part is bytecode 0, three are bytecode 5, two the entry, and two
 * compiled code. It goes on for so many seconds of its own CPU time.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CODE ((char *)0x200000000)
#define DATA ((char *)0x200010000)

__asm__(".text\n"
	"routine:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	push %r13\n"
	"	sub $56, %rsp\n"
	"	mov %rdi, %r13\n"
	"	mov %rsi, -24(%rbp)\n"
	"	mov $2, %eax\n"
	"1:	.rept 200\n"
	"	imul %rax, %rax\n"
	"	.endr\n"
	"	dec %rdx\n"
	"	jnz 1b\n"
	"	add $56, %rsp\n"
	"	pop %r13\n"
	"	pop %rbp\n"
	"	ret\n"
	"routine_end:\n");
extern char routine[], routine_end[];

typedef void run(char *bytecode, char *method, long loops);

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	char *code = mmap(CODE, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
	char *data = mmap(DATA, 8192, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (code != CODE || data != DATA)
		return 2;
	memcpy(code, routine, routine_end - routine);
	memcpy(code + 4096, routine, routine_end - routine);
	run *interpret = (run *)code, *compiled = (run *)(code + 4096);
	char *method = data + 4096;
	struct timespec now;
	do {
		interpret(data, method, 100);
		interpret(data + 5, method, 300);
		interpret(0, method, 200);
		compiled(data, method, 200);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < seconds);
	return 0;
}
