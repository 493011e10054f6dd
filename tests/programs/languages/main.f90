! Recursion, files, a stop with a code.
program main
  implicit none
  integer :: i, code
  real(8) :: total
  character(len=20) :: text
  total = 0
  do i = 1, 100000
    total = total + sin(real(i, 8))
  end do
  write (text, '(f12.6)') total
  print *, trim(text), fib(22)
  read (text, *, iostat=code) i
  print *, code /= 0
  stop 3
contains
  recursive integer function fib(n) result(value)
    integer, intent(in) :: n
    value = n
    if (n > 1) value = fib(n - 1) + fib(n - 2)
  end function
end program
