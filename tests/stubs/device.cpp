// nvtune's device code as a program.
//   device fill FORMAT KIND A B SEED COUNT          the scalars to standard output
//   device compare FORMAT RELATIVE ABSOLUTE COUNT   how many differ; those expected and those that came from standard input
#include "device_code.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int, char **words)
{
    const auto number = [&](int word) { return strtoull(words[word], nullptr, 0); };
    const unsigned format = number(2);
    const u64 count = number(strcmp(words[1], "fill") ? 5 : 7);
    const size_t bytes = count * size_of(format);
    // Words of 8 bytes, aligned as an allocation of the device is.
    vector<u64> first(bytes / 8 + 1), second(bytes / 8 + 1);
    unsigned char *a = (unsigned char *)first.data(), *b = (unsigned char *)second.data();
    if (!strcmp(words[1], "fill")) {
        nvtune_fill(a, count, format, number(3), number(4), number(5), number(6));
        return fwrite(a, 1, bytes, stdout) != bytes;
    }
    if (fread(a, 1, bytes, stdin) != bytes || fread(b, 1, bytes, stdin) != bytes) return 1;
    u64 differing = 0;
    nvtune_compare(a, b, count, format, strtod(words[3], nullptr), strtod(words[4], nullptr), &differing);
    printf("%llu\n", differing);
}
