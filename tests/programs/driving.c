/* Calls what `features.c` has for a `main`, wherever that is. */
#undef main
int features_main(int count, char **words);
int main(int count, char **words) { return features_main(count, words); }
