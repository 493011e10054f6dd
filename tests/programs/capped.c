/* One of some thousand random programs, reduced as long as its counts were wrong. In what clang makes of it with -Os a table without a
   bound is first read too far, into the next one, to an instruction that is none; what is decoded there covers where another
   table's last entry leads, which therefore seemed to end before. What it computes means nothing. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
typedef long (*fn)(long, long);
static volatile long g;
static int fuel = 3000;
static jmp_buf* cur;
static long depth;
__attribute__((noinline)) long f0(long, long);
__attribute__((noinline)) long f1(long, long);
__attribute__((noinline)) long f2(long, long);
__attribute__((noinline)) long f3(long, long);
__attribute__((noinline)) long f4(long, long);
__attribute__((noinline)) long f5(long, long);
__attribute__((noinline)) long f6(long, long);
static fn tab[] = {f0, f1, f2, f3, f4, f5, f6};
static struct node {
  fn f;
  long k;
} nodes[] = {};
static long f0_(long a, long b) {
  long i = 1;
  if ((b + (g | b)) <= ((b | a) * (113 * i))) {
    if (((i * 78) | (59 - i)) < g) {
      switch ((unsigned)(((fuel & (g | i)) - ((g & a) - (186 + 61)))) % 6) {
        case 0:
          if (depth < 6 && fuel-- > 0) g += f6(((182 * g) & a), (i - (a - fuel)));
          break;
        case 1:
          g -= (i < g ? (g - (g | a)) : a);
          break;
        case 2:
        case 3:
          switch ((unsigned)((((b * b) ^ i) & fuel)) % 11) {
            ;
            break;
            case 3: {
              jmp_buf J, *o = cur;
              volatile long va = a, vb = b;
              long dd = depth;
              if (!setjmp(J)) {
              } else {
                cur = o;
                ;
                a = va + 1;
                b = vb;
                i = 0;
              }
            }; break;
            case 5:
            case 6:
              b += (i ^ ((144 & g) * (a ^ fuel)));
              break;
            case 7:
              if ((b - i) == 9) {
              } else {
                a = b;
                g += (i <= g ? fuel : g);
              }
              break;
            case 8:;
          }
          break;
        case 4:
          if (((g > fuel ? i : b) * g) < a) {
            g += ((-15 | -18) & (i % 12));
          }
          break;
        case 5:
          if ((187 < (a & g)) && ((b ^ i) > a)) {
            if (a <= ((g - g) ^ (b - g))) {
              a += (a - fuel);
            } else {
              b ^= (((fuel < 28 ? a : b) + g) + i);
              g = ((i > g) && ((fuel <= 41) && (i != 29)) ? ((70 <= 88 ? fuel : b) & fuel) : g);
              b -= g;
            }
          } else {
            switch ((unsigned)(g) % 16) {
              case 0:
                b ^= i;
                break;
              case 1:
                g = fuel;
                break;
                break;
              case 3:
                return tab[(unsigned long)(((fuel - i) ^ b)) % 7]((b | (a | 47)), ((12 & g) + (fuel | g)));
                ;
              case 5:
                return ((b > b ? i : (fuel | i)) & fuel);
                ;
                break;
              case 7:
                g = 31;
                break;
                ;
                break;
              case 9:
                b += (b | ((18 - fuel) * a));
                break;
                ;
                ;
                break;
              case 12:
                g ^= ((fuel - (g * g)) | (g > fuel ? (b + a) : (193 ^ i)));
                break;
              case 13:
                g = 21;
                break;
                ;
            }
            if (cur && ((i & 199) * i) != ((71 - fuel) & 69)) longjmp(*cur, 1);
            ;
          }
          break;
          ;
      }
      a -= i;
    }
  };
  if (b <= ((fuel - b) ^ (g - 198))) {
    ;
    switch ((unsigned)(g) % 5) {
      case 0:
        if (((fuel | 132) & 135) >= 46) {
          while (fuel-- > 0 && (149 - (fuel ^ g)) >= (b + (i | a))) {
          }
        }
        break;
        ;
      case 2:
      default: {
        static const void* const T1[] = {};
      L1_0:
        g += (((g > fuel) || (i != b)) && ((a > g) && (a >= a)) ? i : fuel);
        goto E1;
        ;
      L1_1:
        if (cur && i >= ((g - b) ^ (fuel > a ? 24 : fuel))) longjmp(*cur, 1);
      L1_2:
        g += ((a & (fuel == fuel ? -16 : b)) | (b ^ (54 + i)));
      E1:;
      }
    }
    if (a == ((fuel % 48) - (fuel * b))) {
      for (i = 0; i < 1 && fuel-- > 0; i++) {
        for (i = 0; i < 1 && fuel-- > 0; i++) {
          switch ((unsigned)(b) % 14) {
            ;
            case 1:
              return f1(((fuel | 182) - (fuel | a)), (b ^ g));
            case 2:
              return f5(84, a);
              ;
              break;
            case 4:
              return 115;
            case 5:
              g = 33;
              break;
            case 6:
              a -= fuel;
              break;
            case 7:
              g = 47;
              break;
            case 8:
              return f4(g, b);
              break;
              ;
              break;
            case 11:
              return g;
            case 12:
              g = 93;
              break;
            case 13:
              g = 22;
              break;
              ;
          }
          if (((b ^ g) % 19) <= (a + (-11 ^ i))) {
          };
        };
      }
    } else {
      switch ((unsigned)(((b <= 190 ? 9 : b) > (49 - g) ? g : fuel)) % 14) {
        case 0:
          return f0(((i ^ fuel) % 25), ((fuel | 130) + (i != b ? b : b)));
        case 1:
          switch ((int)((g) % 89141)) {
            case 54349:
              return i;
              ;
              break;
            case 8856:
              g = 28;
              break;
              ;
              break;
            case 89138:
            case 54572:
              g = 88;
              break;
            default:
              while (fuel-- > 0 && a > (fuel != 36 ? b : (a + i))) {
              }
          }
          break;
        case 2:
          switch ((unsigned)((g - a)) % 16) {
            ;
            break;
            case 2:
              g = (g - (i | (a & b)));
              break;
            case 3:;
              break;
            case 4: {
              jmp_buf J, *o = cur;
              ;
              if (!setjmp(J)) {
                cur = &J;
                if (depth < 6 && fuel-- > 0) g += f2(g, ((fuel ^ fuel) ^ (b + g)));
                cur = o;
              };
            } break;
              ;
              break;
              ;
              break;
              ;
              break;
              ;
              break;
              ;
              break;
              ;
              break;
            case 11:
              for (i = 0;; i++) {
              }
              break;
              ;
              break;
            case 13:
              return nodes[(unsigned long)((i + (b * a))) % 5].f(((fuel & a) ^ (b * 40)),
                                                                 ((fuel | a) - (i ^ i)));
              ;
              ;
          }
          break;
        case 3:
          if (depth < 6 && fuel-- > 0) g += f5(148, (b >= b ? (19 - 120) : (fuel * 6)));
          break;
        case 4:
          return i;
        case 5:
          if (((b | fuel) * (a - b)) <= i) {
            ;
            if (g > g) {
              ;
              ;
              b = ((a - (i ^ b)) | (g * g));
            }
          }
          break;
        case 6:
        case 7:
          switch ((unsigned)((((89 != b ? fuel : 123) + b) | (i | fuel))) % 8) {}
          break;
          ;
          break;
          ;
          break;
        case 10:
          g = 88;
          break;
        case 11:
          return fuel;
        case 12:
          if (a >= 48) return f5(fuel, b);
        case 13:
          return ((fuel | 129) < (a + b) ? a : i);
          ;
      }
    }
  }
  return a;
}
long f0(long a, long b) {
  ;
  depth++;
  long r = f0_(a, b);
  depth--;
  return r;
}
long f1(long a, long b) {}
static long f2_(long a, long b) {
  long i = 1;
  g ^= g;
  a = fuel;
  if ((a * (fuel >= i ? a : a)) != ((a <= b) || (fuel <= g) ? (122 & fuel) : (131 <= fuel ? i : fuel))) {
  };
  return tab[(unsigned long)(((g | b) + (i + 162))) % 7]((b - i), a);
}
long f2(long a, long b) {
  ;
  depth++;
  long r = f2_(a, b);
  depth--;
  ;
}
long f3(long a, long b) {}
static long f4_(long a, long b) {
  long i = 1;
  a -= i;
  g += (b * ((i ^ g) | (g ^ fuel)));
  return tab[(unsigned long)((b | b)) % 7](((b % 38) * (i ^ g)), b);
}
long f4(long a, long b) {
  if (fuel-- <= 0) return b;
  depth++;
  long r = f4_(a, b);
  depth--;
  ;
}
static long f5_(long a, long b) {
  long i = 1;
  ;
  for (i = 0; i < 3 && fuel-- > 0; i++) {
  }
  return (b + ((84 < 165) || (fuel != g) ? (g & g) : (fuel > g ? g : -1)));
}
long f5(long a, long b) {
  ;
  depth++;
  long r = f5_(a, b);
  depth--;
  return r;
}
long f6(long a, long b) {
  long i = 0;
  ;
  ;
  if ((i - (fuel % 11)) < 92) return tab[(unsigned long)(-5) % 7](((fuel - 166) | b), 91);
  ;
}
int main() {
  long s = 0;
  for (int k = 0; k < 9; k++) {
    fuel = 120;
    depth = 0;
    cur = 0;
    jmp_buf J;
    if (!setjmp(J)) {
      cur = &J;
      s = s * 31 + tab[k % 7](k, s & 255);
    }
  };
  ;
}
