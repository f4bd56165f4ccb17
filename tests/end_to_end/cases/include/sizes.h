#ifndef SIZE
#define SIZE 8
#endif
enum { NO_ROWS, ROWS = 8 };
namespace sizes {
constexpr int WIDTH = ROWS;
}
