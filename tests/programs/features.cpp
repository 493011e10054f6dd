#include <iostream>
int main() { std::cout << "ok\n"; }
